/* The larger networks on the ref backend against float64 PyTorch (tests/oracle/nets.py). */
#include "nets.h"

static void resnet20_agrees_with_pytorch_on_32x32_pixels(void) {
    check_net("resnet20-evonorm");
    check_net("resnet20-evonorm-s0");
}
static void vgg11_agrees_with_pytorch(void) {
    check_net("vgg11-evonorm");
}
static void mobilenetv2_agrees_with_pytorch(void) {
    check_net("mobilenetv2-evonorm");
    check_net("mobilenetv2-batchnorm");
}
static void resnet18_agrees_with_pytorch(void) {
    check_net("resnet18-evonorm");
}

int main(void) {
    TEST(resnet20_agrees_with_pytorch_on_32x32_pixels);
    TEST(vgg11_agrees_with_pytorch);
    TEST(mobilenetv2_agrees_with_pytorch);
    TEST(resnet18_agrees_with_pytorch);
    return test_report();
}
