/* NORM(id): kernels of norms, `const cuda_norm_kernels ct_cuda_norm_<id>` in a file of its own. The
 * first ones that fit a norm and direction compute it. */
NORM(batch)    /* batchnorm.cu */
NORM(measured) /* evonorm_apply.cu: the kernel before has taken sums */
NORM(resnet20) /* resnet20/evonorm_back.cu: the norms of its fused convolutions, backward */
NORM(shared)   /* evonorm_group.cu: a sample shared out to blocks */
NORM(general)  /* norm.cu: one block a sample */
