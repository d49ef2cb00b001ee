import os
import re
import unittest

import numpy as np
from common import Folder

import crosstalk


class Options(unittest.TestCase):
    def test_keywords_are_options_with_underscores(self):
        config = crosstalk.Config(batch_size=64, algorithm="ccl", nesterov=False, lr_milestones=[0.3, 0.6])
        self.assertEqual(config["batch_size"], 64)
        self.assertEqual(config["batch-size"], 64)
        self.assertIs(config["nesterov"], False)
        self.assertEqual(config["lr_milestones"], "0.3,0.6")

    def test_values_come_back_as_python_has_them(self):
        config = crosstalk.Config(lr=np.float64(0.25), agents=np.int32(3))
        self.assertEqual((config["lr"], config["agents"]), (0.25, 3))
        self.assertEqual(crosstalk.Config()["lr"], "auto")

    def test_an_unknown_option_names_the_nearest_and_is_a_value_error(self):
        with self.assertRaises(ValueError) as caught:
            crosstalk.Config(batchsize=3)
        self.assertIsInstance(caught.exception, crosstalk.Error)
        self.assertEqual(caught.exception.status, crosstalk.Status.INVAL)

    def test_errors_name_keywords(self):
        with self.assertRaises(crosstalk.InvalidError) as caught:
            crosstalk.Config(batch_size=0)
        self.assertEqual(caught.exception.about, "batch_size")
        self.assertIn("batch_size", str(caught.exception))
        self.assertNotIn("--", str(caught.exception))
        self.assertNotIn("@", str(caught.exception))

    def test_of_several_options_none_is_set_if_one_is_wrong(self):
        config = crosstalk.Config()
        with self.assertRaises(crosstalk.InvalidError):
            config.update(lr=0.5, momentum=7)
        self.assertEqual(config["lr"], "auto")

    def test_what_is_no_value_is_a_type_error(self):
        with self.assertRaises(TypeError):
            crosstalk.Config(lr=object())
        with self.assertRaises(ValueError):
            crosstalk.Config(out="a\0b")

    def test_the_schema_can_be_walked(self):
        by_name = {option.name: option for option in crosstalk.options()}
        self.assertEqual(by_name["alpha"].kind, "real")
        self.assertEqual(by_name["alpha"].default, 0.1)
        self.assertEqual(by_name["norm"].choices[0], "evonorm")
        self.assertTrue(by_name["threads"].is_local)
        self.assertGreater(by_name["agents"].highest, by_name["agents"].lowest)
        self.assertIn("lr", by_name["warmup_epochs"].help)
        self.assertFalse(any(re.search("@[a-z]", option.help) for option in by_name.values()))

    def test_copies_are_their_own(self):
        config = crosstalk.Config(lr=0.1)
        other = config.copy()
        other["lr"] = 0.2
        self.assertEqual(config["lr"], 0.1)
        del other["lr"]
        self.assertEqual(other["lr"], "auto")
        self.assertEqual(repr(config), "Config(lr=0.1)")


class Files(Folder):
    def test_a_written_config_reads_back(self):
        crosstalk.Config(lr=0.125, agents=5).write(self.path("config.txt"))
        config = crosstalk.Config.read(self.path("config.txt"))
        self.assertEqual((config["lr"], config["agents"]), (0.125, 5))

    def test_a_missing_file_is_an_os_error(self):
        with self.assertRaises(OSError) as caught:
            crosstalk.Config.read(self.path("none.txt"))
        self.assertIsInstance(caught.exception, crosstalk.FileError)
        self.assertFalse(os.path.exists(self.path("none.txt")))


if __name__ == "__main__":
    unittest.main()
