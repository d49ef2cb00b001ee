/* Every data set: DATASET(id, "name", "one line of help"). No include guard on purpose. */
DATASET(shapes, "shapes", "ten kinds of drawn shapes, 1x28x28, made up on the spot from the seed")
DATASET(noise, "noise", "random pixels and labels, 3x32x32, 10 classes, for measuring speed")
DATASET(fashion_mnist, "fashion-mnist", "Fashion-MNIST, 1x28x28, 10 classes (IDX files)")
DATASET(mnist, "mnist", "MNIST digits, 1x28x28, 10 classes (IDX files)")
DATASET(idx, "idx", "any grey images and labels in four IDX files named like MNIST's")
DATASET(cifar10, "cifar10", "CIFAR-10, 3x32x32, 10 classes (binary version)")
DATASET(cifar100, "cifar100", "CIFAR-100, 3x32x32, 100 fine classes (binary version)")
DATASET(miniimagenet, "miniimagenet", "mini-ImageNet, 3x32x32, 100 classes (as cifar100)")
