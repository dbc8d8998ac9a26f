import math
from typing import Tuple

@torch.no_grad()
def run(a, b: Tuple[int, str] = (1, "):"), /, c=[1, {2: 3}], *args, d=lambda x: x, **kw):
    """A text with def run(x): in it."""
    text = f'{a!r:>{10}}' + r"\n" + b'''
def run(x):
'''
    return a if b else \
        c  # def comment(
async def other(x): pass
class thing:
    def run(self): ...
if True:
    def hidden(): pass
