/* KERNELS(id): a family of kernels for convolutions, `const cuda_family ct_cuda_<id>` in a file of
 * its own. The first one that fits a convolution and direction computes it. */
KERNELS(wgmma)      /* conv_wgmma.cu, wgrad_wgmma.cu: large ones in bf16, on Hopper */
KERNELS(depthwise)  /* depthwise.cu, depthwise_back.cu: 3x3 */
KERNELS(grouped)    /* grouped.cu */
KERNELS(linear)     /* linear.cu */
KERNELS(point)      /* wgrad_mma.cu, conv_mma.cu: 1x1 */
KERNELS(tile)       /* conv_tile.cu, wgrad_tile.cu: whole samples in shared memory */
KERNELS(narrow)     /* narrow.cu: few output channels */
KERNELS(mma)        /* wgrad_mma.cu, conv_mma.cu: any other extent on the tensor cores */
KERNELS(stem_wgmma) /* stem_wgmma.cu, stem_wgrad_wgmma.cu: the next in bf16, on Hopper */
KERNELS(stem)       /* stem.cu: pictures of few channels */
KERNELS(general)    /* conv.cu: whatever is left */
