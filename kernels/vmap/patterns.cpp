// The operators whose batching rule is a line of letters; pattern.cpp says what they mean. In-place forms share the line.
#include "kernels/vmap/vmap.h"

namespace tn::vmap {

const Rule pattern_rules[] = {
    // ---- views ----
    {"view", "fs"}, {"_unsafe_view", "fs"}, {"reshape", "fs"}, {"view.dtype", "f."}, {"expand", "qs."}, {"unsqueeze", "fu"}, {"squeeze.dim", "fd"},
    {"squeeze.dims", "fD"}, {"transpose.int", "fdd"}, {"permute", "fm"}, {"select.int", "fd."}, {"slice.Tensor", "fd..."},
    {"diagonal", "f.dd"}, {"unfold", "fd.."}, {"split.Tensor", "f.d"}, {"split_with_sizes", "f.d"}, {"unbind.int", "fd"}, {"alias", "f"},
    {"detach", "f"}, {"view_as_real", "f"}, {"view_as_complex", "f"}, {"_conj", "f"}, {"_neg_view", "f"}, {"lift_fresh", "f"},
    {"movedim.int", "fdd"}, {"flatten.using_ints", "fdd"},
    // ---- forward mode of the layers below ----
    {"_make_dual", "ee."}, {"_fw_primal", "f."}, {"_unpack_dual", "f."},
    // ---- copies and moves ----
    {"clone", "f."}, {"contiguous", "f."}, {"_to_copy", "f......"}, {"repeat", "qt"}, {"flip", "fD"}, {"tril", "f."}, {"triu", "f."},
    {"diag_embed", "f.uu"}, {"cat", "Ed"}, {"stack", "Eu"}, {"constant_pad_nd", "f.."},
    {"slice_backward", "fzd..."}, {"select_backward", "fzd."}, {"diagonal_backward", "fz.dd"}, {"unfold_backward", "fzd.."},
    // ---- filling ----
    {"zero", "f"}, {"fill.Scalar", "f."}, {"zeros_like", "f....."}, {"ones_like", "f....."}, {"empty_like", "f....."},
    {"full_like", "f......"}, {"new_empty", "fs...."}, {"new_zeros", "fs...."}, {"new_ones", "fs...."}, {"new_full", "fs....."},
    // ---- reductions along dimensions ----
    {"sum.dim_IntList", "fA.."}, {"mean.dim", "fA.."}, {"nansum", "fA.."}, {"prod.dim_int", "fd.."}, {"amax", "fA."}, {"amin", "fA."},
    {"max.dim", "fd."}, {"min.dim", "fd."}, {"any.dim", "fd."}, {"all.dim", "fd."}, {"any.dims", "fA."}, {"all.dims", "fA."},
    {"argmax", "fo."}, {"argmin", "fo."}, {"var.correction", "fA.."}, {"std.correction", "fA.."}, {"var_mean.correction", "fA.."},
    {"std_mean.correction", "fA.."}, {"logsumexp", "fA."}, {"linalg_vector_norm", "f.A.."}, {"norm.ScalarOpt_dim", "f.A."},
    {"norm.ScalarOpt_dim_dtype", "f.A.."}, {"count_nonzero.dim_IntList", "fA"}, {"median.dim", "fd."}, {"nanmedian.dim", "fd."},
    {"mode", "fd."}, {"kthvalue", "f.d."}, {"aminmax", "fo."},
    // ---- along a dimension ----
    {"cumsum", "fd."}, {"cumprod", "fd."}, {"logcumsumexp", "fd"}, {"cummax", "fd"}, {"cummin", "fd"}, {"sort", "fd."},
    {"sort.stable", "f.d."}, {"argsort.stable", "f.d."}, {"topk", "f.d.."}, {"_softmax", "fd."}, {"_log_softmax", "fd."}, {"softmax.int", "fd."},
    {"log_softmax.int", "fd."}, {"_softmax_backward_data", "eed."}, {"_log_softmax_backward_data", "eed."}, {"_safe_softmax", "fd."},
    {"gather", "ede."}, {"scatter.src", "edee"}, {"scatter.value", "ede."}, {"scatter_add", "edee"}, {"scatter_reduce.two", "edee.."},
    {"glu", "fd"}, {"glu_backward", "eed"},
    // ---- linear algebra of stacks of matrices ----
    {"linalg_inv_ex", "f."}, {"linalg_cholesky_ex", "f.."}, {"linalg_qr", "f."}, {"_linalg_svd", "f..."}, {"_linalg_eigh", "f.."},
    {"_linalg_det", "f"}, {"_linalg_slogdet", "f"}, {"linalg_lu_factor_ex", "f.."}, {"linalg_matrix_exp", "f"}, {"matrix_exp", "f"},
    {nullptr, nullptr},
};

}  // namespace tn::vmap
