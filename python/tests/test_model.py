import os
import unittest

import numpy as np
from common import QUICK, Folder, pictures

import crosstalk

try:
    from PIL import Image

    has_pil = True
except ImportError:
    has_pil = False


class Models(Folder):
    @classmethod
    def setUpClass(cls):
        cls.images, cls.labels = pictures(160)
        names = ["upper left", "upper right", "lower left", "lower right"]
        options = {**QUICK, "epochs": 6, "lr": 0.1}
        cls.run_ = crosstalk.train(
            cls.images, cls.labels, test=(cls.images, cls.labels), class_names=names, **options
        )

    def test_a_model_predicts_what_the_run_measured(self):
        with self.run_.model() as model:
            probabilities = model.predict(self.images)
            self.assertEqual(probabilities.shape, (160, 4))
            np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
            accuracy = (probabilities.argmax(1) == self.labels).mean()
            self.assertAlmostEqual(accuracy, self.run_.metrics["consensus_accuracy"], places=6)
            self.assertEqual(model.class_names[3], "lower right")
            self.assertEqual(model.shape, (1, 8, 8))
            self.assertEqual(model.facts["network"], "mlp:8")
            self.assertIn(model.classify(self.images[:1])[0], model.class_names)

    def test_arrays_of_any_layout_agree(self):
        with self.run_.model() as model:
            expected = model.predict(self.images[:5])
            np.testing.assert_array_equal(model.predict(self.images[:5, 0]), expected)
            np.testing.assert_array_equal(model.predict(self.images[0, 0]), expected[:1])
            last = np.ascontiguousarray(self.images[:5].transpose(0, 2, 3, 1))
            np.testing.assert_array_equal(model.predict(last, layout="NHWC"), expected)
            mean, std = model.normalisation
            floats = ((self.images[:5] / 255 - mean[0]) / std[0]).astype(np.float32)
            np.testing.assert_allclose(model.predict(floats), expected, rtol=0, atol=1e-5)

    def test_saved_and_opened_it_predicts_the_same(self):
        self.run_.save(self.path("agent.safetensors"), agent=1)
        with crosstalk.Model(self.path("agent.safetensors")) as model, self.run_.model(agent=1) as same:
            np.testing.assert_array_equal(model.predict(self.images), same.predict(self.images))

    @unittest.skipUnless(has_pil, "PIL is not installed")
    def test_files_and_pil_images_are_predicted_alike(self):
        pictures_ = [Image.fromarray(image[0]) for image in self.images[:3]]
        paths = [self.path(f"{k}.png") for k in range(3)]
        for picture, path in zip(pictures_, paths):
            picture.save(path)
        with self.run_.model() as model:
            expected = model.predict(self.images[:3])
            np.testing.assert_allclose(model.predict(paths), expected, atol=1e-6)
            np.testing.assert_allclose(model.predict(pictures_), expected, atol=1e-6)
            np.testing.assert_allclose(model.predict(pictures_[0]), expected[:1], atol=1e-6)
            broken = self.path("broken.png")
            with open(broken, "wb") as file:
                file.write(b"no picture")
            with self.assertRaises(OSError):
                model.predict([paths[0], broken])
            found = model.predict([paths[0], broken], unreadable="nan")
            np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
            self.assertTrue(np.isnan(found[1]).all())

    def test_wrong_inputs_are_refused(self):
        with self.run_.model() as model:
            for inputs, kind in (
                (self.images.astype(np.float64), TypeError),
                (self.images[:, :, :4], ValueError),
                (np.zeros((2, 3, 8, 8), np.uint8), ValueError),
                ([], (ValueError, TypeError)),
            ):
                with self.assertRaises(kind) as caught:
                    model.predict(inputs)
                self.assertIsInstance(caught.exception, crosstalk.Error)
        with self.assertRaisesRegex(crosstalk.InvalidError, "closed"):
            model.predict(self.images)

    def test_a_missing_or_broken_file_is_an_os_error(self):
        with self.assertRaises(OSError):
            crosstalk.Model(self.path("none.safetensors"))
        with open(self.path("broken.safetensors"), "wb") as file:
            file.write(b"\xff" * 100)
        with self.assertRaises(OSError):
            crosstalk.Model(self.path("broken.safetensors"))

    def test_onnx_is_written(self):
        with self.run_.model() as model:
            model.export_onnx(self.path("model.onnx"), with_preprocessing=True)
        self.assertGreater(os.path.getsize(self.path("model.onnx")), 4 * self.run_.n_parameters)


if __name__ == "__main__":
    unittest.main()
