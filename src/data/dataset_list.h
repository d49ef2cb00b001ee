/* Every data set: DATASET(id, "name", probe, "one line of help"). The probe tells from a folder
 * whether this set lies there (--dataset auto asks them in this order, the special before the
 * general); `never` is for sets that cannot be told. No include guard on purpose. */
DATASET(shapes, "shapes", never,
        "ten kinds of drawn shapes, 1x28x28, made up on the spot from the seed")
DATASET(noise, "noise", never, "random pixels and labels, 3x32x32, 10 classes, for measuring speed")
DATASET(noise100, "noise100", never, "the same with 100 classes")
DATASET(fashion_mnist, "fashion-mnist", fashion_mnist,
        "Fashion-MNIST, 1x28x28, 10 classes (IDX files)")
DATASET(mnist, "mnist", never, "MNIST digits, 1x28x28, 10 classes (IDX files)")
DATASET(idx, "idx", idx, "any grey images and labels in four IDX files named like MNIST's")
DATASET(cifar10, "cifar10", cifar10,
        "CIFAR-10, 3x32x32, 10 classes (binary version, or its .tar.gz)")
DATASET(miniimagenet, "miniimagenet", miniimagenet,
        "mini-ImageNet, 3x32x32, 100 classes (as cifar100)")
DATASET(cifar100, "cifar100", cifar100,
        "CIFAR-100, 3x32x32, 100 fine or 20 coarse classes (binary version, or its .tar.gz)")
DATASET(npy, "npy", npy, "NumPy arrays: {train,test}_{images,labels}.npy or {x,y}_{train,test}.npy")
DATASET(imagenette, "imagenette", imagenette,
        "Imagenette, 10 classes, folders of JPEG files (32 pixels; @image-size N)")
DATASET(imagenet, "imagenet", imagenet,
        "ImageNet, 1000 classes, folders of JPEG files (224 pixels; @image-size N)")
DATASET(folder, "folder", folder,
        "JPEG and PNG files in train/<class>/ and val/<class>/ (32 pixels; @image-size N)")
DATASET(pack, "pack", pack, "pictures in one file, as crosstalk data import writes them")
