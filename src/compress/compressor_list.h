/* COMPRESSOR(id): the entry ct_compressor_<id> of the file that implements it. No include guard on
 * purpose. */
COMPRESSOR(top_k)
COMPRESSOR(top_k8)
COMPRESSOR(random_k)
COMPRESSOR(quantize)
COMPRESSOR(sign)
COMPRESSOR(low_rank)
