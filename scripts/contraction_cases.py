# More cases of scripts/make-family-cases: matrix products and convolutions; read by it, with `torch` and `F` at
# hand.

F32, BF16, F16 = "float32", "bfloat16", "float16"
MKN = dict(M=None, K=None, N=None)
ODD = [dict(M=33, K=17, N=65), dict(M=1, K=1, N=1), dict(M=7, K=64, N=8)]


@case(MKN, dict(a=(["M", "K"], F32), b=(["K", "N"], F32)), dict(y=(["M", "N"], F32)), "gemm", ODD)
def product_nn(a, b):
    return a @ b


@case(MKN, dict(a=(["M", "K"], BF16), b=(["N", "K"], BF16)), dict(y=(["M", "N"], BF16)), "gemm", ODD)
def product_nt(a, b):
    return a @ b.t()


@case(MKN, dict(a=(["K", "M"], BF16), b=(["K", "N"], BF16)), dict(y=(["M", "N"], BF16)), "gemm",
      [dict(M=40, K=48, N=72), dict(M=9, K=33, N=7)])
def product_tn(a, b):
    return a.t() @ b


@case(dict(B=None, S=None, K=24, N=40),
      dict(x=(["B", "S", "K"], BF16), w=(["N", "K"], BF16), b=(["N"], BF16), r=(["B", "S", "N"], BF16)),
      dict(y=(["B", "S", "N"], BF16)), "gemm", [dict(B=2, S=13), dict(B=1, S=1)])
def linear_gelu_residual(x, w, b, r):
    return F.gelu(F.linear(x, w, b)) * 0.5 + r


@case(dict(B=None, S=None, K=16, H=3, D=8, E="H * D"),
      dict(x=(["B", "S", "K"], BF16), w=(["E", "K"], BF16)), dict(y=(["B", "H", "S", "D"], BF16)), "gemm",
      [dict(B=2, S=9)])
def split_heads_projection(x, w):
    return F.linear(x, w).view(x.shape[0], x.shape[1], 3, 8).transpose(1, 2).contiguous()


@case(dict(B=None, H=3, S=None, D=8, E="H * D", N=20),
      dict(x=(["B", "H", "S", "D"], F32), w=(["N", "E"], F32), r=(["B", "S", "N"], F32)),
      dict(y=(["B", "S", "N"], F32)), "gemm", [dict(B=2, S=9)])
def merged_heads_projection(x, w, r):
    merged = x.transpose(1, 2).reshape(x.shape[0], x.shape[2], 24)
    return r + F.linear(merged, w)


@case(dict(B=None, M=None, K=None, N=None), dict(a=(["B", "M", "K"], F32), b=(["B", "N", "K"], F32)),
      dict(y=(["B", "M", "N"], F32)), "gemm", [dict(B=3, M=7, K=33, N=18), dict(B=1, M=32, K=8, N=32)])
def batched_scaled(a, b):
    return torch.bmm(a, b.transpose(1, 2)) * 0.125


@case(dict(B=None, H=6, G=2, R="H // G", S=None, T=None, D=16),
      dict(q=(["B", "S", "H", "D"], BF16), k=(["B", "T", "G", "D"], BF16)),
      dict(y=(["B", "H", "S", "T"], BF16)), "gemm", [dict(B=2, S=10, T=17)])
def grouped_query_scores(q, k):
    keys = k.transpose(1, 2)[:, :, None].expand(k.shape[0], 2, 3, k.shape[1], 16)
    keys = keys.reshape(k.shape[0], 6, k.shape[1], 16)
    return torch.matmul(q.transpose(1, 2), keys.transpose(2, 3)) * 0.25


@case(MKN, dict(a=(["M", "K"], F32), b=(["K", "N"], F32)), dict(y=(["M", "N"], F32)), "gemm",
      [dict(M=5, K=40, N=12)])
def expressions_as_operands(a, b):
    return torch.relu(torch.matmul(torch.sigmoid(a), b + b))


@case(MKN, dict(a=(["M", "K"], BF16), b=(["N", "K"], BF16), s=(["M", "1"], F32)), dict(y=(["M", "N"], F32)), "gemm",
      [dict(M=20, K=32, N=24), dict(M=3, K=64, N=48)])
def wide_product_of_narrow_numbers(a, b, s):
    return torch.matmul(a.float(), b.float().t()) * s


@case(dict(M=None, K=None), dict(a=(["M", "K"], F32), x=(["K", "1"], F32)), dict(y=(["M", "1"], F32)), "gemm",
      [dict(M=37, K=129), dict(M=4, K=64)])
def matrix_times_column(a, x):
    return torch.matmul(a, x)


@case(dict(M=None, K=None), dict(a=(["M", "K"], BF16), x=(["K"], BF16), b=(["M"], BF16)), dict(y=(["M"], BF16)),
      "gemm", [dict(M=37, K=136)])
def matrix_times_vector(a, x, b):
    return torch.addmv(b, a, x, beta=0.5, alpha=2.0)


@case(dict(K=None, N=None), dict(x=(["1", "K"], BF16), w=(["K", "N"], BF16)), dict(y=(["1", "N"], BF16)),
      "gemm", [dict(K=130, N=72)])
def row_times_matrix(x, w):
    return x @ w


@case(dict(K=None), dict(a=(["K"], F32), b=(["K"], F32)), dict(y=([], F32)), "gemm", [dict(K=100)])
def dot_of_vectors(a, b):
    return torch.dot(a, b)


@case(dict(M=None, K=16, N=24, E="2 * N"), dict(a=(["M", "K"], BF16), w=(["E", "K"], BF16), g=(["M", "E"], BF16)),
      dict(y=(["M", "E"], BF16)), "gemm", [dict(M=21)])
def gated_by_a_tensor(a, w, g):
    return F.silu(g) * (a @ w.t())


@case(dict(B=None, C=6, O=10, H=None, W=None, Ho="(H - 1) // 2 + 1", Wo="(W - 1) // 2 + 1"),
      dict(x=(["B", "C", "H", "W"], F32), w=(["O", "C", "3", "3"], F32), b=(["O"], F32)),
      dict(y=(["B", "O", "Ho", "Wo"], F32)), "convolution", [dict(B=2, H=9, W=7), dict(B=1, H=1, W=1)])
def strided_convolution(x, w, b):
    return F.relu(F.conv2d(x, w, b, stride=2, padding=1))


@case(dict(B=None, W=None, H=None, C=None, Ho="H - 2", Wo="W - 2"),
      dict(x=(["B", "C", "H", "W"], F32), w=(["C", "1", "3", "3"], F32), b=(["C"], F32)),
      dict(y=(["B", "C", "Ho", "Wo"], F32)), "convolution", [dict(B=2, C=3, H=8, W=11), dict(B=1, C=1, H=3, W=3)])
def depthwise_convolution(x, w, b):
    return F.conv2d(x, w, b, groups=x.shape[1])


@case(dict(B=None, C=8, O=12, L=None, Lo="L - 2"),
      dict(x=(["B", "C", "L"], BF16), w=(["O", "4", "3"], BF16)), dict(y=(["B", "O", "Lo"], BF16)), "convolution",
      [dict(B=3, L=20)])
def grouped_convolution_1d(x, w):
    return F.silu(F.conv1d(x, w, padding=1, dilation=2, groups=2))


@case(dict(B=None, C=16, O=24, H=None, W=None),
      dict(x=(["B", "C", "H", "W"], BF16), w=(["O", "C", "1", "1"], BF16), b=(["O"], BF16),
           r=(["B", "O", "H", "W"], BF16)),
      dict(y=(["B", "O", "H", "W"], BF16)), "convolution", [dict(B=2, H=4, W=8), dict(B=1, H=3, W=5)])
def pointwise_convolution(x, w, b, r):
    return F.conv2d(x, w, b) + r


@case(dict(B=None, C=4, L=None), dict(x=(["B", "L", "C"], F32), w=(["C", "1", "4"], F32), b=(["C"], F32)),
      dict(y=(["B", "L", "C"], F32)), "convolution", [dict(B=2, L=15)])
def causal_convolution_1d(x, w, b):
    y = F.conv1d(x.transpose(1, 2), w, b, padding=3, groups=4)
    return F.silu(y[..., :x.shape[1]]).transpose(1, 2).contiguous()
