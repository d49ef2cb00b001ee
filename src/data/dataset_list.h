/* Every data set: DATASET(id, "name", probe, kind, defaults, place, "one line of help"). No include
 * guard on purpose.
 *   id        ct_dataset_open_<id> reads it; one that reads several sets goes by their names
 *   probe     tells from a folder whether this set lies there (@dataset auto asks them in this
 *             order, the special before the general); `never`: it cannot be told
 *   kind      MADE_UP on the spot, PUBLISHED under this name, or one's OWN arrays or PICTURES:
 *             whatever lies in the folder
 *   defaults  what it is trained with unless one says otherwise (dataset.c)
 *   place     where the system keeps it; NULL: one must say */
DATASET(shapes, "shapes", never, MADE_UP, lenet5, NULL,
        "ten kinds of drawn shapes, 1x28x28, made up on the spot from the seed")
DATASET(noise, "noise", never, MADE_UP, other, NULL,
        "random pixels and labels, 3x32x32, 10 classes, for measuring speed")
DATASET(noise, "noise100", never, MADE_UP, other, NULL, "the same with 100 classes")
DATASET(idx, "fashion-mnist", fashion_mnist, PUBLISHED, lenet5, "/usr/share/datasets/fashion-mnist",
        "Fashion-MNIST, 1x28x28, 10 classes (IDX files)")
DATASET(idx, "mnist", never, PUBLISHED, lenet5, NULL,
        "MNIST digits, 1x28x28, 10 classes (IDX files)")
DATASET(idx, "idx", idx, OWN_ARRAYS, other, NULL,
        "any grey images and labels in four IDX files named like MNIST's")
DATASET(cifar, "cifar10", cifar10, PUBLISHED, cifar10, NULL,
        "CIFAR-10, 3x32x32, 10 classes (binary version, or its .tar.gz)")
DATASET(cifar, "miniimagenet", miniimagenet, PUBLISHED, cifar100, NULL,
        "mini-ImageNet, 3x32x32, 100 classes (as cifar100)")
DATASET(cifar, "cifar100", cifar100, PUBLISHED, cifar100, NULL,
        "CIFAR-100, 3x32x32, 100 fine or 20 coarse classes (binary version, or its .tar.gz)")
DATASET(npy, "npy", npy, OWN_ARRAYS, other, NULL,
        "NumPy arrays: {train,test}_{images,labels}.npy or {x,y}_{train,test}.npy")
DATASET(folder, "imagenette", imagenette, PUBLISHED, imagenette, NULL,
        "Imagenette, 10 classes, folders of JPEG files (32 pixels; @image-size N)")
DATASET(folder, "imagenet", imagenet, PUBLISHED, imagenet, NULL,
        "ImageNet, 1000 classes, folders of JPEG files (224 pixels; @image-size N)")
DATASET(folder, "folder", folder, OWN_PICTURES, cifar100, NULL,
        "JPEG and PNG files in train/<class>/ and val/<class>/ (32 pixels; @image-size N)")
DATASET(pack, "pack", pack, OWN_PICTURES, cifar100, NULL,
        "pictures in one file, as crosstalk data import writes them")
DATASET(csv, "csv", csv, OWN_ARRAYS, table, NULL,
        "a table: file.csv, or train.csv and test.csv (@label NAME; also ; or tab, and .gz)")
