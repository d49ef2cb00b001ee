/* MODEL(id, "name", channels, side, "one line of help"): ct_model_<id>() in models/ describes the
 * layers. channels and side are those of the images it was made for, for tables; others may fit
 * too. */
MODEL(lenet5, "lenet5", 1, 28, "LeNet-5 with ReLU, no norm (1x28x28: 61,706 parameters)")
MODEL(mlp, "mlp", 1, 28, "one hidden layer; mlp:64 sets its width (64)")
MODEL(logistic, "logistic", 1, 28, "a linear classifier; its features are the pixels")
MODEL(resnet20, "resnet20", 3, 32, "ResNet-20 for small images (272,474 parameters for 10 classes)")
MODEL(resnet32, "resnet32", 3, 32, "ResNet-32 for small images")
MODEL(resnet44, "resnet44", 3, 32, "ResNet-44 for small images")
MODEL(resnet56, "resnet56", 3, 32, "ResNet-56 for small images")
MODEL(resnet110, "resnet110", 3, 32, "ResNet-110 for small images")
MODEL(resnet18, "resnet18", 3, 224, "ResNet-18 for 224x224 images (features 512)")
MODEL(resnet34, "resnet34", 3, 224, "ResNet-34 for 224x224 images (features 512)")
MODEL(mobilenetv2, "mobilenetv2", 3, 32, "MobileNet-V2 for 32x32 images (features 1280)")
MODEL(vgg11, "vgg11", 3, 32, "narrow VGG-11 for 32x32 images (features 128)")
