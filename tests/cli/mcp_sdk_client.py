"""A whole session with `gristmill mcp`, driven by the client of the official Python SDK.

usage: mcp_sdk_client.py GRISTMILL RUN_FOLDER DOCS_FOLDER

Compile, emulate, check, evaluate, leaderboard, history, docs, hand in: in the revision without a
handshake (2026-07-28), then a few calls in the one before it. Prints "ok" at the end; any other end
is a failure.
"""

import asyncio
import json
import sys
from pathlib import Path

from mcp import StdioServerParameters
from mcp.client.client import Client

GOOD = """extern "C" __global__ void transpose_tile(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (x < columns && y + i < rows)
      tile[threadIdx.y + i][threadIdx.x] = in[(long long)(y + i) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (x < rows && y + i < columns)
      out[(long long)(y + i) * rows + x] = tile[threadIdx.x][threadIdx.y + i];
}
"""
PLAN = json.dumps({
    "schema": "gristmill.plan/1",
    "variants": [{"steps": [{
        "op": "launch", "entry": "transpose_tile",
        "grid": ["ceil_div(columns, 32)", "ceil_div(rows, 32)", 1], "block": [32, 8, 1],
        "args": ["matrix", "transposed", "rows", "columns"]}]}]})
BROKEN = GOOD.replace("__syncthreads();", "__syncthreads()")
WRONG = GOOD.replace("+ i][threadIdx.x] = in", "+ i][threadIdx.x] = 1 + in")
HYPOTHESIS = "A padded shared tile makes both sides coalesced and free of bank conflicts."


def need(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def code(source):
    return {"problem": "transpose", "source": source, "plan": PLAN}


async def whole_session(server):
    told = []

    async def on_progress(done, total, message):
        told.append((done, message))

    async with Client(server) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        need({"list_problems", "show_problem", "compile", "emulate", "check", "evaluate",
              "leaderboard", "history", "docs", "hand_in"} <= tools, f"tools: {tools}")
        listed = await client.call_tool("list_problems", {})
        need(listed.structured_content["problems"][0]["problem"] == "transpose", "list_problems")
        shown = await client.call_tool("show_problem", {"problem": "transpose"})
        page = shown.content[0].text
        for word in ("matrix", "transposed", "gristmill.plan/1", "MODELLED", "def run(matrix)"):
            need(word in page, f"show_problem says nothing of {word}")
        resources = (await client.list_resources()).resources
        need(any(str(r.uri) == "gristmill://program.md" for r in resources), "resources")
        prompt = await client.get_prompt("optimise", {"problem": "transpose"})
        need("transpose" in prompt.messages[0].content.text, "prompt")
        found = await client.call_tool("docs", {"question": "how is a tile copied in the background?"})
        need(found.structured_content["hits"][0]["file"] == "quern.md", "docs")

        broken = await client.call_tool("compile", code(BROKEN))
        need(broken.structured_content["status"] == "COMPILE_ERROR", "compile of broken code")
        # clang names the line that lacks the semicolon, NVRTC the next one.
        need("line 8" in broken.content[0].text or "line 9" in broken.content[0].text,
             broken.content[0].text)
        good = await client.call_tool("compile", code(GOOD))
        need(good.structured_content["status"] == "PASSED", good.content[0].text)
        profile = await client.call_tool("emulate", code(GOOD), progress_callback=on_progress)
        need(profile.structured_content["status"] == "PASSED", profile.content[0].text)
        need("MODELLED" in profile.content[0].text, profile.content[0].text)
        checked = await client.call_tool("check", code(WRONG))
        need(checked.structured_content["status"] == "INCORRECT_NUMERICAL", checked.content[0].text)
        checked = await client.call_tool("check", code(GOOD))
        need(checked.structured_content["status"] == "PASSED", checked.content[0].text)

        refused = await client.call_tool("evaluate", {**code(GOOD), "hypothesis": "x"})
        need(refused.is_error, "a hypothesis of one letter")
        judged = await client.call_tool(
            "evaluate", {**code(GOOD), "hypothesis": HYPOTHESIS}, progress_callback=on_progress)
        verdict = judged.structured_content
        need(verdict["status"] == "PASSED" and verdict["improved"], judged.content[0].text)
        need(verdict["objective_ns"] > 0 and "MODELLED" in verdict["times_are"], verdict)
        again = (await client.call_tool("evaluate", {**code(GOOD), "hypothesis": HYPOTHESIS}))
        need(again.structured_content["tried_before"], again.content[0].text)
        need(again.structured_content["objective_ns"] == verdict["objective_ns"], "the same verdict")
        wrong = await client.call_tool("evaluate", {
            **code(WRONG.replace("tile[32][33]", "tile[32][34]")), "parent": verdict["candidate"],
            "hypothesis": "A wider pad; the added constant must be found by the judge."})
        need(wrong.structured_content["status"] == "INCORRECT_NUMERICAL", wrong.content[0].text)
        board = await client.call_tool("leaderboard", {})
        row = board.structured_content["problems"][0]
        need(row["best_candidate"] == verdict["candidate"], row)
        past = (await client.call_tool("history", {"problem": "transpose"})).structured_content
        need([a["status"] for a in past["attempts"]] == ["PASSED", "PASSED", "INCORRECT_NUMERICAL"],
             past)
        handed = (await client.call_tool("hand_in", {"problem": "transpose", "note": "best"}))
        need(handed.structured_content["candidate"] == verdict["candidate"], handed.content[0].text)
        need(told and [p for p, _ in told] is not None, "progress was told")
        return handed.structured_content["folder"]


async def old_session(server):
    async with Client(server, mode="legacy") as client:
        tools = await client.list_tools()
        need(len(tools.tools) == 9, "without --docs there is no docs tool")
        listed = await client.call_tool("list_problems", {})
        need(not listed.is_error, "list_problems in the revision with a handshake")


def main():
    program, run, docs = sys.argv[1:4]
    common = ["mcp", "transpose", "--gpus", "mock:h200", "--seed", "7"]
    folder = asyncio.run(whole_session(StdioServerParameters(
        command=program, args=[*common, "--out", run, "--docs", docs])))
    for name in ("solution.json", "candidate.cu", "candidate.plan.json"):
        need((Path(run) / folder / name).is_file(), f"hand_in wrote no {name}")
    asyncio.run(old_session(StdioServerParameters(
        command=program, args=[*common, "--out", run + "-old"])))
    print("ok")


if __name__ == "__main__":
    main()
