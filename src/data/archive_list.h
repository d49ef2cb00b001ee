/* Official archives: ARCHIVE(set, file, folder, url, digest). `folder` is what unpacking makes,
 * NULL: the file is used as it is. A digest of 64 digits is SHA-256; of 32, MD5, where nothing
 * better is published. No include guard on purpose. */
#define CT_MNIST_FILES(set, url, a, b, c, d)                                                       \
    ARCHIVE(set, "train-images-idx3-ubyte.gz", NULL, url, a)                                       \
    ARCHIVE(set, "train-labels-idx1-ubyte.gz", NULL, url, b)                                       \
    ARCHIVE(set, "t10k-images-idx3-ubyte.gz", NULL, url, c)                                        \
    ARCHIVE(set, "t10k-labels-idx1-ubyte.gz", NULL, url, d)

ARCHIVE("cifar10", "cifar-10-binary.tar.gz", "cifar-10-batches-bin",
        "https://www.cs.toronto.edu/~kriz/",
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd")
ARCHIVE("cifar100", "cifar-100-binary.tar.gz", "cifar-100-binary",
        "https://www.cs.toronto.edu/~kriz/",
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec")
ARCHIVE("imagenette", "imagenette2-160.tgz", "imagenette2-160",
        "https://s3.amazonaws.com/fast-ai-imageclas/", "e793b78cc4c9e9a4ccc0c1155377a412")
CT_MNIST_FILES("fashion-mnist", "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
               "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
               "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310")
CT_MNIST_FILES("mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/",
               "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
               "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c")

#undef CT_MNIST_FILES
