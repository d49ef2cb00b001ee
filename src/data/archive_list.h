/* Official archives: ARCHIVE(set, file, n_bytes, sha256, url, folder, contents). `folder` is what
 * unpacking makes, NULL: the file is used as it is. `contents` are lines as sha256sum writes them, of
 * the files in it that are read; NULL: they are noted when the archive is unpacked.
 * Where the digests come from: archives of CIFAR, Imagenette and MNIST: TensorFlow Datasets'
 * published checksums; Fashion-MNIST: computed from files with the MD5 sums of its authors; files of
 * CIFAR-10: computed; of CIFAR-100: torchvision for Ruby, whose sums of CIFAR-10's files are ours.
 * No include guard on purpose. */
#define CT_CIFAR_URL "https://www.cs.toronto.edu/~kriz/"
#define CT_FASHION_URL                                                                             \
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
#define CT_MNIST_URL "https://ossci-datasets.s3.amazonaws.com/mnist/"
#define CT_IDX(set, name, n_bytes, url, sha256)                                                    \
    ARCHIVE(set, name "-ubyte.gz", n_bytes, sha256, url, NULL, NULL)

ARCHIVE("cifar10", "cifar-10-binary.tar.gz", 170052171,
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", CT_CIFAR_URL,
        "cifar-10-batches-bin",
        "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5  data_batch_1.bin\n"
        "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed  data_batch_2.bin\n"
        "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67  data_batch_3.bin\n"
        "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48  data_batch_4.bin\n"
        "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add  data_batch_5.bin\n"
        "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b  test_batch.bin\n")
ARCHIVE("cifar100", "cifar-100-binary.tar.gz", 168513733,
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec", CT_CIFAR_URL,
        "cifar-100-binary",
        "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29  train.bin\n"
        "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a  test.bin\n")
ARCHIVE("imagenette", "imagenette2-160.tgz", 99003388,
        "64d0c4859f35a461889e0147755a999a48b49bf38a7e0f9bd27003f10db02fe5",
        "https://s3.amazonaws.com/fast-ai-imageclas/", "imagenette2-160", NULL)
CT_IDX("fashion-mnist", "train-images-idx3", 26421880, CT_FASHION_URL,
       "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84")
CT_IDX("fashion-mnist", "train-labels-idx1", 29515, CT_FASHION_URL,
       "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845")
CT_IDX("fashion-mnist", "t10k-images-idx3", 4422102, CT_FASHION_URL,
       "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073")
CT_IDX("fashion-mnist", "t10k-labels-idx1", 5148, CT_FASHION_URL,
       "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5")
CT_IDX("mnist", "train-images-idx3", 9912422, CT_MNIST_URL,
       "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609")
CT_IDX("mnist", "train-labels-idx1", 28881, CT_MNIST_URL,
       "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c")
CT_IDX("mnist", "t10k-images-idx3", 1648877, CT_MNIST_URL,
       "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6")
CT_IDX("mnist", "t10k-labels-idx1", 4542, CT_MNIST_URL,
       "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6")

#undef CT_CIFAR_URL
#undef CT_FASHION_URL
#undef CT_MNIST_URL
#undef CT_IDX
