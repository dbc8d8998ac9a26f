# The cases of scripts/make-family-cases; read by it, with `torch` and `F` at hand.

ROPE = dict(B=None, S=None, H=3, D=16)
X4 = (["B", "S", "H", "D"], "bfloat16")


@case(ROPE, dict(x=X4, c=(["S", "D"], "bfloat16"), s=(["S", "D"], "bfloat16")), dict(y=X4), "index",
      [dict(B=2, S=9), dict(B=1, S=3)])
def rope_halves(x, c, s):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * c[None, :, None, :] + turned * s[None, :, None, :]


@case(ROPE, dict(x=X4, c=(["S", "D"], "float32"), s=(["S", "D"], "float32")), dict(y=X4), "index",
      [dict(B=2, S=9), dict(B=1, S=3)])
def rope_pairs(x, c, s):
    pairs = x.float().reshape(x.shape[0], x.shape[1], x.shape[2], -1, 2)
    a, b = pairs[..., 0], pairs[..., 1]
    cc = c.reshape(c.shape[0], -1, 2)[None, :, None, :, 0]
    ss = s.reshape(s.shape[0], -1, 2)[None, :, None, :, 1]
    return torch.stack([a * cc - b * ss, a * ss + b * cc], dim=-1).flatten(3).to(x.dtype)


@case(dict(M=None, N=None, E="N + 7"), dict(x=(["M", "N"], "float32"), z=(["M", "7"], "float32")),
      dict(y=(["M", "E"], "float32")), "index", [dict(M=4, N=6)])
def joined(x, z):
    return torch.cat([x, z], dim=1)


@case(dict(B=None, C=2, H=None, W=None, Ho="H + 3", Wo="W + 2"), dict(x=(["B", "C", "H", "W"], "float32")),
      dict(y=(["B", "C", "Ho", "Wo"], "float32")), "index", [dict(B=2, H=3, W=4)])
def padded(x):
    return F.pad(x, (1, 1, 0, 3), value=2.0)


@case(dict(B=None, N=None), dict(x=(["B", "N"], "float32")), dict(y=(["B", "N"], "float32")), "index",
      [dict(B=3, N=8)])
def rolled(x):
    return torch.roll(x.flip(1), shifts=2, dims=1) + torch.roll(x, shifts=-1, dims=0)


@case(dict(V=11, D=6, T=None), dict(table=(["V", "D"], "bfloat16"), ids=(["T"], "int64")),
      dict(y=(["T", "D"], "bfloat16")), "index", [dict(T=7)])
def embedded(table, ids):
    return F.embedding(ids, table) * 2.0


@case(dict(B=None, S=None), dict(x=(["B", "S", "S"], "float32")), dict(y=(["B", "S", "S"], "float32")), "index",
      [dict(B=2, S=5)])
def causal_mask(x):
    mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), diagonal=1)
    return x.masked_fill(mask, -10.0)


@case(dict(M=None, D=6, E="2 * D"), dict(x=(["M", "E"], "bfloat16")), dict(y=(["M", "D"], "bfloat16")), "index",
      [dict(M=5)])
def swiglu_chunks(x):
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


@case(dict(B=None, S=None, H=4, D=8, E="H * D"), dict(x=(["B", "S", "E"], "float32")),
      dict(y=(["B", "H", "S", "D"], "float32")), "index", [dict(B=2, S=5)])
def split_heads(x):
    return x.view(x.shape[0], x.shape[1], 4, 8).transpose(1, 2).contiguous() * 0.5


@case(dict(N=None, K=None), dict(x=(["N"], "int64"), y=(["K"], "int32")), dict(z=(["N", "K"], "bool")), "index",
      [dict(N=9, K=4)])
def integer_mask(x, y):
    return ((x[:, None] * 2 - y[None, :]) // 3 >= 0) & (x[:, None] % 2 == 0)


@case(dict(B=None, C=3, H=8, W=12, Ho="H // 2", Wo="W // 2"), dict(x=(["B", "C", "H", "W"], "float32")),
      dict(y=(["B", "C", "Ho", "Wo"], "float32")), "index", [dict(B=2)])
def pooled(x):
    return F.max_pool2d(x, 2) + F.avg_pool2d(x, 3, stride=2, padding=1)


@case(dict(B=None, N=None, K=None), dict(x=(["B", "N"], "float32"), ids=(["B", "K"], "int64")),
      dict(y=(["B", "K"], "float32")), "index", [dict(B=3, N=4, K=6)])
def gathered(x, ids):
    return torch.gather(x, 1, ids) + torch.index_select(x, 1, ids[0])


@case(dict(B=None, S=None, H=2, D=4), dict(x=(["B", "S", "H", "D"], "bfloat16")),
      dict(y=(["B", "S", "6", "D"], "bfloat16")), "index", [dict(B=2, S=3)])
def repeated_heads(x):
    return x[:, :, :, None, :].expand(x.shape[0], x.shape[1], 2, 3, 4).reshape(x.shape[0], x.shape[1], 6, 4) + \
        torch.repeat_interleave(x, 3, dim=2)


# ---- reductions


NCHW = dict(B=None, C=6, H=None, W=None)
IMAGE = (["B", "C", "H", "W"], "float32")


@case(NCHW, dict(x=IMAGE, w=(["C"], "float32"), b=(["C"], "float32")), dict(y=IMAGE), "fold",
      [dict(B=2, H=3, W=5)])
def group_normalised(x, w, b):
    return F.group_norm(x, 3, w, b) * 2.0


@case(NCHW, dict(x=IMAGE), dict(y=IMAGE), "fold", [dict(B=2, H=3, W=5)])
def instance_normalised(x):
    return F.instance_norm(x) / 2.0


@case(dict(M=None, N=None), dict(x=(["M", "N"], "float32")), dict(y=(["N"], "float32")), "fold",
      [dict(M=37, N=70), dict(M=3, N=5)])
def column_sums(x):
    return (x * x).sum(dim=0) * 0.5


@case(dict(M=None, N=None), dict(x=(["M", "N"], "float32")), dict(y=([], "float32")), "fold",
      [dict(M=37, N=70)])
def mean_of_all(x):
    return torch.sigmoid(x).mean()


@case(dict(M=None, N=None), dict(x=(["M", "N"], "float32")), dict(y=(["M"], "int64"), z=(["M"], "float32")), "fold",
      [dict(M=9, N=70)])
def best_of_row(x):
    return torch.argmax(x, dim=1), x.max(dim=1).values


@case(dict(B=None, C=5, N=None), dict(x=(["B", "C", "N"], "float32")), dict(y=(["B", "C", "N"], "float32")), "fold",
      [dict(B=3, N=40)])
def softmax_of_middle(x):
    return torch.softmax(x * 0.7, dim=1)


@case(dict(M=None, N=None), dict(x=(["M", "N"], "float32"), t=(["M"], "int64")), dict(y=(["M"], "float32")), "fold",
      [dict(M=9, N=70)])
def entropy_of_target(x, t):
    return torch.logsumexp(x, dim=1) - x.gather(1, t[:, None])[:, 0]


@case(dict(M=None, K=None, G=8, N="K * G"), dict(x=(["M", "N"], "bfloat16")),
      dict(q=(["M", "N"], "int8"), s=(["M", "K"], "float32")), "fold", [dict(M=5, K=3)])
def quantised_blocks(x):
    blocks = x.float().reshape(x.shape[0], -1, 8)
    scale = blocks.abs().amax(dim=-1) / 127.0
    q = torch.clamp(torch.round(blocks / scale[..., None]), -127, 127).to(torch.int8)
    return q.reshape(x.shape), scale


@case(dict(B=None, S=None, D=12), dict(g=(["B", "S", "D"], "float32"), x=(["B", "S", "D"], "float32"),
                                       w=(["D"], "float32")),
      dict(gx=(["B", "S", "D"], "float32")), "fold", [dict(B=2, S=5)])
def rms_gradient(g, x, w):
    inverse = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    gw = g * w
    return inverse * gw - x * inverse.pow(3) * (gw * x).mean(-1, keepdim=True)


@case(dict(B=None, S=None, D=12), dict(g=(["B", "S", "D"], "float32"), x=(["B", "S", "D"], "float32")),
      dict(gw=(["D"], "float32"), gb=(["D"], "float32")), "fold", [dict(B=2, S=25)])
def weight_gradient(g, x):
    inverse = torch.rsqrt(x.pow(2).sum((0, 1), keepdim=True) + 1.0)
    return (g * x * inverse).sum((0, 1)), g.sum(dim=[0, 1])


@case(dict(M=None, N=None), dict(p=(["M", "N"], "float32"), g=(["M", "N"], "float32")),
      dict(gx=(["M", "N"], "float32")), "fold", [dict(M=5, N=33)])
def softmax_gradient(p, g):
    return torch._softmax_backward_data(g, p, -1, torch.float32) * 0.5


@case(dict(B=None, H=None, W=None), dict(x=(["B", "H", "W"], "float32"), w=(["H", "W"], "float32")),
      dict(y=(["B", "H", "W"], "float32"), v=(["B"], "float32")), "fold", [dict(B=3, H=4, W=5)])
def plane_variance(x, w):
    centred = x - x.mean(dim=(1, 2), keepdim=True)
    return centred / torch.sqrt(x.var(dim=(1, 2), keepdim=True) + 0.1) * w, x.var(dim=(1, 2))


@case(dict(M=None, N=None), dict(x=(["M", "N"], "bfloat16")), dict(y=(["M", "N"], "bfloat16")), "fold",
      [dict(M=4, N=300)])
def rows_of_halves(x):
    half = torch.cat([-x[:, 1:], x[:, :1]], dim=1)
    return torch.softmax(half.float(), dim=-1).to(x.dtype)


# ---- attention

HEADS = dict(B=None, S=None, H=4, D=8)
BSHD = (["B", "S", "H", "D"], "float32")


@case(HEADS, dict(q=BSHD, k=BSHD, v=BSHD), dict(y=(["B", "S", "H", "D"], "float32")), "attention",
      [dict(B=2, S=37), dict(B=1, S=3)])
def causal_attention(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    mask = torch.tril(torch.ones(q.shape[2], q.shape[2], dtype=torch.bool))
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return (weights @ v).transpose(1, 2).contiguous()


@case(dict(B=None, S=None, T=None, H=4, K=2, D=16),
      dict(q=(["B", "H", "S", "D"], "bfloat16"), k=(["B", "K", "T", "D"], "bfloat16"),
           v=(["B", "K", "T", "D"], "bfloat16"), m=(["B", "1", "S", "T"], "float32")),
      dict(y=(["B", "H", "S", "D"], "bfloat16")), "attention", [dict(B=2, S=19, T=40)])
def grouped_attention(q, k, v, m):
    k = k.repeat_interleave(2, dim=1)
    v = v.repeat_interleave(2, dim=1)
    scores = torch.matmul(q, k.transpose(2, 3)) * 0.25 + m
    return torch.matmul(torch.softmax(scores.float(), dim=-1).to(q.dtype), v)


@case(dict(B=None, S=None, H=3, D=24, E="3 * 24"), dict(x=(["B", "S", "3", "E"], "float32")),
      dict(y=(["B", "S", "E"], "float32")), "attention", [dict(B=2, S=33)])
def packed_attention(x):
    q, k, v = (x[:, :, i].view(x.shape[0], x.shape[1], 3, 24).transpose(1, 2) for i in range(3))
    places = torch.arange(x.shape[1])
    far = (places[:, None] - places[None, :]).abs() > 6
    scores = torch.tanh(q @ k.transpose(-1, -2) * 24 ** -0.5 / 5.0) * 5.0
    weights = torch.softmax(torch.where(far, torch.tensor(-1e9), scores), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(x.shape[0], x.shape[1], 72) * 0.5


# ---- the other way round


@case(dict(M=None, N=None), dict(x=(["M", "N"], "float32"), b=(["M"], "float32")),
      dict(y=(["N", "M"], "float32")), "transpose", [dict(M=37, N=70), dict(M=3, N=5)])
def turned(x, b):
    return torch.relu(x).t().contiguous() + b


@case(dict(B=None, S=None, H=3, D=40), dict(x=(["B", "S", "H", "D"], "bfloat16")),
      dict(y=(["B", "H", "D", "S"], "bfloat16")), "transpose", [dict(B=2, S=35)])
def keys_of_heads(x):
    return (x * 2.0).permute(0, 2, 3, 1).contiguous()


@case(dict(B=None, H=None, W=None, N="H * W"), dict(x=(["B", "N", "N"], "float32"), z=(["B", "H", "W"], "float32")),
      dict(y=(["B", "N", "N"], "float32")), "index", [dict(B=2, H=2, W=3)])
def scaled_by_size(x, z):
    return F.elu(x) / (z.shape[1] * z.shape[2]) + z.flatten(1)[:, None] * z.shape[2] ** -0.5


# ---- scans


@case(dict(B=None, N=None), dict(x=(["B", "N"], "float32")), dict(y=(["B", "N"], "float32")), "scan",
      [dict(B=3, N=70), dict(B=1, N=1)])
def running_sums(x):
    return torch.cumsum(torch.sigmoid(x), dim=-1) * 0.5


@case(dict(B=None, S=None, N=None), dict(x=(["B", "S", "N"], "bool")), dict(y=(["B", "S", "N"], "int64")), "scan",
      [dict(B=2, S=2, N=40)])
def running_places(x):
    return torch.cumsum(x, dim=2) - 1


# ---- the largest


@case(dict(T=None, E=9), dict(x=(["T", "E"], "float32")), dict(v=(["T", "3"], "float32"), i=(["T", "3"], "int64")),
      "topk", [dict(T=6)])
def routed_experts(x):
    values, places = torch.topk(torch.sigmoid(x), 3, dim=-1)
    return values * 2.5, places


@case(dict(T=None, N=None), dict(x=(["T", "N"], "float32")), dict(v=(["T", "4"], "float32")), "topk",
      [dict(T=3, N=70)])
def smallest_of_row(x):
    return torch.topk(x - 0.5, 4, dim=1, largest=False).values


@case(dict(R=None, D=None), dict(x=(["R", "D"], "bfloat16"), w=(["D"], "bfloat16"), g=(["R", "D"], "bfloat16")),
      dict(gx=(["R", "D"], "bfloat16"), gw=(["D"], "float32")), "sweep", [dict(R=5, D=776), dict(R=3, D=131)])
def rms_gradients_of_both(x, w, g):
    x, dy = x.float(), g.float()
    inverse = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
    normed = x * inverse
    scaled = dy * w.float()
    share = (scaled * normed).mean(dim=-1, keepdim=True)
    return ((scaled - normed * share) * inverse).to(torch.bfloat16), (dy * normed).sum(dim=0)


@case(dict(R=None, C=None), dict(x=(["R", "C"], "float32")), dict(y=(["R", "C"], "float32")), "sweep",
      [dict(R=2, C=4100)])
def softmax_of_long_rows(x):
    return torch.softmax(x * 4.0, dim=-1)


@case(dict(S=None, H=None, D=32, E=16), dict(x=(["S", "H", "D"], "bfloat16"), c=(["S", "E"], "float32"),
                                             s=(["S", "E"], "float32")),
      dict(y=(["S", "H", "D"], "bfloat16")), "parts", [dict(S=5, H=3), dict(S=2, H=1)])
def rotated_halves(x, c, s):
    x = x.float()
    first, second = x[..., :16], x[..., 16:]
    cc, ss = c[:, None, :], s[:, None, :]
    return torch.cat((first * cc - second * ss, second * cc + first * ss), dim=-1).to(torch.bfloat16)


@case(dict(R=None, C=None), dict(x=(["R", "C"], "float32")), dict(y=(["C", "R"], "float32")), "transpose",
      [dict(R=72, C=68)])
def turned_wide(x):
    return x.t().contiguous()
