import gc
import glob
import os
import resource
import signal
import subprocess
import threading
import unittest
import weakref

import numpy as np
from common import PROGRAM, QUICK, Folder, needs_program, pictures, quick

import crosstalk


class Training(unittest.TestCase):
    def test_a_run_learns_in_steps_and_reports(self):
        with quick(epochs=6, lr=0.1) as run:
            self.assertEqual(run.iteration, 0)
            self.assertEqual(run.n_iterations, 6 * run.epoch_length)
            self.assertTrue(run.step(3))
            self.assertEqual(run.iteration, 3)
            run.run()
            self.assertTrue(run.is_done)
            self.assertFalse(run.step())
            self.assertGreater(run.metrics["consensus_accuracy"], 0.9)
            self.assertEqual(len(run.history["ce"]), 6)
            self.assertLess(run.history["ce"][-1], run.history["ce"][0])

    def test_steps_of_any_size_have_the_same_bits(self):
        with quick() as whole, quick() as stepped:
            whole.run()
            while stepped.step(3):
                pass
            np.testing.assert_array_equal(whole.row(), stepped.row())
            self.assertEqual(whole.metrics.get("ce"), stepped.metrics.get("ce"))

    def test_train_is_one_call(self):
        images, labels = pictures(160)
        run = crosstalk.train(images, labels, **QUICK)
        self.assertTrue(run.is_done)
        self.assertNotIn("consensus_accuracy", run.metrics)  # nothing to test on
        self.assertEqual(run.directory, "")

    def test_options_are_resolved(self):
        with quick(lr="auto") as run:
            self.assertIsInstance(run.option("lr"), float)
            self.assertEqual(run.option("batch_size"), 8)

    def test_evaluate_gives_metrics_before_training(self):
        with quick() as run:
            self.assertIn("consensus_accuracy", run.evaluate())
            self.assertEqual(run.iteration, 0)

    def test_two_runs_in_two_threads_have_the_bits_of_one_alone(self):
        with quick() as alone:
            expected = alone.run().row()
        rows = {}

        def work(k):
            with quick() as run:
                rows[k] = run.run().row()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for k in range(2):
            np.testing.assert_array_equal(rows[k], expected)

    def test_seeds_are_worlds(self):
        with quick(seeds=[1, 2]) as run:
            run.run()
            self.assertEqual(run.n_worlds, 2)
            self.assertFalse(np.array_equal(run.row(0, world=0), run.row(0, world=1)))
            self.assertEqual(len(run.history_of(1)["ce"]), 2)


class Inputs(unittest.TestCase):
    def test_uint8_and_float32_arrays_are_not_copied(self):
        for kind in (np.uint8, np.float32):
            images = pictures(160)[0].astype(kind)
            data = crosstalk.Data(images, pictures(160)[1])
            self.assertTrue(np.shares_memory(data.train.values, images))
        labels = pictures(160)[1]
        self.assertTrue(np.shares_memory(crosstalk.Data(images, labels).train.labels, labels))

    def test_nhwc_pictures_give_the_same_bits(self):
        images, labels = pictures(160)
        colour = np.concatenate([images, images // 2, 255 - images], axis=1)
        last = np.ascontiguousarray(colour.transpose(0, 2, 3, 1))
        first = crosstalk.train(colour, labels, **QUICK).row()
        np.testing.assert_array_equal(first, crosstalk.train(last, labels, layout="NHWC", **QUICK).row())

    def test_rows_of_numbers_are_taken(self):
        images, labels = pictures(160)
        rows = images.reshape(160, -1).astype(np.float32)
        run = crosstalk.train(rows, labels, **{**QUICK, "model": "logistic"})
        self.assertEqual(run.consensus()["fc.weight"].shape, (4, 64))

    def test_agents_may_bring_their_own_data(self):
        images, labels = pictures(160)
        parts = [(images[k::4], labels[k::4]) for k in range(4)]
        owners = np.arange(160) % 4
        options = {key: value for key, value in QUICK.items() if key not in ("alpha", "agents")}
        own = crosstalk.train(parts, shuffle=False, **options)
        self.assertEqual(own.n_agents, 4)
        same = crosstalk.train(images, labels, agent_of=owners, shuffle=False, **options)
        np.testing.assert_array_equal(own.row(2), same.row(2))

    def test_a_graph_of_edges_or_a_matrix_is_the_ring(self):
        edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
        matrix = np.zeros((4, 4))
        for a, b in edges:
            matrix[a, b] = matrix[b, a] = 1
        with quick(graph="ring") as named, quick(graph=edges) as listed, quick(graph=matrix) as dense:
            expected = named.run().row(1)
            np.testing.assert_array_equal(listed.run().row(1), expected)
            np.testing.assert_array_equal(dense.run().row(1), expected)

    def test_a_graph_like_networkx_has_is_taken(self):
        class Graph:
            nodes = ["a", "b", "c"]

            def edges(self):
                return [("a", "b"), ("b", "c")]

        graph = crosstalk.Graph(Graph())
        self.assertEqual(graph.edges.tolist(), [[0, 1], [1, 2]])
        self.assertEqual(graph.n_agents, 3)

    def test_bad_inputs_are_refused_with_one_clear_error(self):
        images, labels = pictures(160)
        floats = images.astype(np.float64)
        for what, expected, keywords in (
            ("data", TypeError, dict(data=floats, labels=labels)),
            ("labels", ValueError, dict(data=images, labels=labels[:-1])),
            ("labels", TypeError, dict(data=images, labels=labels.astype(float))),
            ("data", ValueError, dict(data=images[0, 0, 0], labels=labels)),
            ("test", ValueError, dict(data=images, labels=labels, test=pictures(8, side=6))),
            ("mean", ValueError, dict(data=images, labels=labels, mean=[0.5, 0.5])),
            ("layout", ValueError, dict(data=images, labels=labels, layout="HWC")),
            ("graph", ValueError, dict(data=images, labels=labels, graph=[(0, 1, 2)])),
            ("model", TypeError, dict(data=images, labels=labels, model=3)),
            ("labels", ValueError, dict(data=images)),
            ("test", ValueError, dict(test=(images, labels))),
            ("agent_of", ValueError, dict(data=images, labels=labels, agent_of=[0])),
        ):
            with self.subTest(what), self.assertRaises(expected) as caught:
                crosstalk.Run(**{**QUICK, **keywords})
            self.assertIsInstance(caught.exception, crosstalk.Error, what)
            self.assertEqual(caught.exception.about, what)

    def test_what_the_library_refuses_names_the_keyword(self):
        images, labels = pictures(160)
        for keywords in (
            dict(agent_of=np.zeros(160, np.int32)),  # agents 1 .. 3 have nothing
            dict(graph=[(0, 1), (2, 3)]),
            dict(model="lenet6"),
            dict(n_classes=2),
            dict(algorithm="nothing"),
        ):
            with self.subTest(keywords), self.assertRaises(crosstalk.Error) as caught:
                crosstalk.Run(images, labels, **{**QUICK, **keywords})
            self.assertNotIn("@", str(caught.exception))
            self.assertNotIn("--", str(caught.exception))

    def test_failures_leak_nothing(self):
        images = np.zeros((2000, 1, 32, 32), np.uint8)
        labels = np.zeros(2000, np.int32)

        def fail():
            with self.assertRaises(crosstalk.Error):
                crosstalk.Run(images.copy(), labels, **{**QUICK, "model": "lenet6"})

        fail()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(40):
            fail()
        gc.collect()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 16 * 1024)  # KiB; leaking the pictures alone would be 80 MiB


class Parameters(unittest.TestCase):
    def test_parameters_have_names_and_shapes(self):
        with quick() as run:
            parameters = run.parameters(0)
            self.assertEqual(list(parameters), ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"])
            self.assertEqual(parameters["fc1.weight"].shape, (8, 64))
            self.assertEqual(sum(value.size for value in parameters.values()), run.n_parameters)

    def test_the_consensus_is_the_mean_of_the_agents(self):
        with quick() as run:
            run.step(5)
            mean = np.mean([run.row(agent).astype(np.float64) for agent in range(4)], axis=0)
            np.testing.assert_allclose(run.row(), mean, rtol=0, atol=1e-7)

    def test_parameters_can_be_set(self):
        with quick() as run:
            before = run.row(2)
            run.set_parameters({"fc2.bias": [1, 2, 3, 4]}, agent=1)
            np.testing.assert_array_equal(run.parameters(1)["fc2.bias"], [1, 2, 3, 4])
            np.testing.assert_array_equal(run.row(2), before)
            run.set_parameters(np.ones(run.n_parameters))
            self.assertTrue((run.row() == 1).all())
            for wrong in ({"fc9.bias": 0}, {"fc2.bias": [1]}, np.ones(3)):
                with self.assertRaises(crosstalk.InvalidError):
                    run.set_parameters(wrong)
            with self.assertRaises(crosstalk.InvalidError):
                run.row(7)

    def test_views_are_no_copies_and_outlive_the_run(self):
        run = quick()
        view = run.view(1)
        self.assertTrue(np.shares_memory(view, run.view(1)))
        view[:] = 3
        self.assertTrue((run.row(1) == 3).all())
        run.views(1)["fc2.bias"][0] = 5
        self.assertEqual(run.parameters(1)["fc2.bias"][0], 5)
        run.close()
        gc.collect()
        self.assertEqual(view[0], 3)

    def test_rows_are_lent_through_dlpack(self):
        with quick() as run:
            row = np.from_dlpack(run.dlpack(0))
            np.testing.assert_array_equal(row, run.row(0))
            self.assertTrue(np.shares_memory(row, run.view(0)))
        gc.collect()
        self.assertTrue(np.isfinite(row).all())  # the row keeps the run's memory

    def test_a_capsule_that_nobody_takes_is_freed(self):
        from crosstalk import _dlpack

        with quick() as run:
            held = len(_dlpack._held)
            row = run.dlpack(0)
            for version in (None, (1, 0)):
                capsule = row.__dlpack__(max_version=version)
                self.assertEqual(len(_dlpack._held), held + 1)
                del capsule
                self.assertEqual(len(_dlpack._held), held)
            with self.assertRaises(BufferError):
                row.__dlpack__(copy=True)


class Life(Folder):
    def test_a_closed_run_says_so(self):
        run = quick()
        run.close()
        run.close()
        for use in (lambda: run.step(), lambda: run.metrics, lambda: run.row(), lambda: run.view(0), run.evaluate):
            with self.assertRaises(crosstalk.InvalidError) as caught:
                use()
            self.assertEqual(str(caught.exception), "the run is closed")
        self.assertIn("closed", repr(run))

    def test_a_run_that_nobody_holds_is_freed(self):
        run = quick()
        run.step()
        owned = weakref.ref(run._owned)
        del run
        self.assertIsNone(owned())

    def test_callbacks_hear_every_epoch_and_may_stop(self):
        heard = []

        class Callback:
            def on_start(self, run):
                heard.append("start")

            def on_epoch(self, run, metrics):
                heard.append((run.iteration // run.epoch_length, round(metrics["epoch"])))
                if len(heard) == 3:
                    run.stop()

            def on_end(self, run, error):
                heard.append(error)

        with quick(epochs=5, callbacks=[Callback()]) as run:
            run.run()
            self.assertEqual(heard, ["start", (1, 1), (2, 2), None])
            self.assertFalse(run.is_done)

    def test_what_a_callback_raises_comes_out_and_the_run_goes_on(self):
        class Mine(Exception):
            pass

        problem = Mine("no")

        def on_epoch(run, metrics):
            if run.iteration == run.epoch_length:
                raise problem

        with quick(on_epoch=on_epoch) as run:
            with self.assertRaises(Mine) as caught:
                run.run()
            self.assertIs(caught.exception, problem)
            self.assertEqual(run.iteration, run.epoch_length)
            run.run()
            self.assertTrue(run.is_done)

    def test_log_lines_reach_the_callback_and_its_exception_comes_out(self):
        lines = []
        with quick(on_log=lambda level, text: lines.append((level, text)), out=self.path("run")) as run:
            run.run()
        self.assertTrue(lines)
        self.assertTrue(all(level in ("passing", "line", "note", "warning") for level, _ in lines))
        self.assertFalse(any("@" in text for _, text in lines))

        def on_log(level, text):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            with quick(on_log=on_log, out=self.path("other")) as run:
                run.run()

    def test_a_run_that_is_used_already_is_refused(self):
        problems = []

        def on_log(level, text):
            if hasattr(self, "used"):
                try:
                    self.used.iteration
                except crosstalk.BusyError as error:
                    problems.append(error)

        with quick(on_log=on_log, out=self.path("run")) as self.used:
            self.used.run()
        self.assertTrue(problems)

    def test_a_bad_number_of_steps_is_refused(self):
        with quick() as run, self.assertRaises(crosstalk.InvalidError):
            run.step(0)

    def test_divergence_is_an_arithmetic_error(self):
        with quick(lr=1e6, weight_decay=1000, epochs=4) as run, self.assertRaises(crosstalk.DivergedError):
            run.run()


class Directories(Folder):
    def test_a_run_leaves_a_record(self):
        with quick(out=self.path("run"), epochs=3) as run:
            run.run()
            self.assertEqual(os.path.realpath(run.directory), os.path.realpath(self.path("run")))
            history, agents = run.history, [run.metrics]
        record = crosstalk.Record(self.path("run"))
        self.assertEqual(record.state, crosstalk.State.DONE)
        self.assertEqual(record.n_epochs, 3)
        np.testing.assert_allclose(record.metrics["ce"], history["ce"], rtol=1e-6)
        self.assertEqual(record.options["batch_size"], 8)
        self.assertEqual(record.split.shape, (4, 4))
        self.assertEqual(record.split.sum(), 160)
        self.assertEqual(record.confusion.sum(), 40)
        self.assertEqual(len(record.edges), 4)
        self.assertAlmostEqual(record.summary["consensus_accuracy"], agents[0]["consensus_accuracy"], places=6)
        self.assertEqual(record.agent_accuracy.shape, (4,))
        self.assertIn("done", repr(record))
        try:
            import pandas  # noqa: F401
        except ImportError:
            with self.assertRaises(ImportError):
                record.frame()
        else:
            self.assertEqual(len(record.frame()), 3)

    def test_a_missing_record_is_an_os_error(self):
        with self.assertRaises(OSError):
            crosstalk.Record(self.path("nothing"))

    def test_a_directory_that_is_taken_is_refused(self):
        with quick(out=self.path("run")) as run:
            run.run()
        with self.assertRaises(crosstalk.Error) as caught:
            quick(out=self.path("run"))
        self.assertIn("force", str(caught.exception))
        quick(out=self.path("run"), force=True).close()

    def test_a_stopped_run_resumes_with_the_same_bits(self):
        with quick(out=self.path("whole"), epochs=4) as run:
            expected = run.run().row()
        with quick(out=self.path("run"), epochs=4) as run:
            run.step(7)
            run.checkpoint()
        with quick(resume=self.path("run"), out=self.path("run"), epochs=4) as run:
            self.assertEqual(run.iteration, 7)
            np.testing.assert_array_equal(run.run().row(), expected)

    def test_other_options_than_saved_are_refused(self):
        with quick(out=self.path("run"), epochs=4) as run:
            run.step(7)
            run.checkpoint()
        with self.assertRaises(crosstalk.DiffersError):
            quick(resume=self.path("run"), out=self.path("run"), epochs=4, lr=0.2)

    def test_ctrl_c_stops_with_a_checkpoint(self):
        signals = []

        def press_once(level, text):
            if not signals:
                signals.append(level)
                os.kill(os.getpid(), signal.SIGINT)

        with quick(out=self.path("run"), epochs=50) as run:
            run._listener._on_log = press_once  # from here on: the first line comes while it trains
            with self.assertRaises(KeyboardInterrupt):
                run.run()
            stopped = run.iteration
            self.assertLess(stopped, run.n_iterations)
            self.assertTrue(glob.glob(os.path.join(run.directory, "checkpoint", "*")))
            self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        with quick(resume=self.path("run"), out=self.path("run"), epochs=50) as run:
            self.assertEqual(run.iteration, stopped)

    @needs_program
    def test_a_run_has_the_bits_of_the_command_line(self):
        options = dict(
            dataset="shapes",
            train_samples=200,
            test_samples=40,
            agents=4,
            alpha=0.1,
            model="lenet5",
            algorithm="ccl",
            iterations=6,
            save_agents=True,
        )
        words = []
        for name, value in options.items():
            words += ["--" + name.replace("_", "-")] + ([] if value is True else [str(value)])
        subprocess.run([PROGRAM, "train", *words, "--out", self.path("shell")], check=True, capture_output=True)
        crosstalk.train(**options, out=self.path("python"))
        for name in ("consensus.safetensors", "agents.safetensors"):
            with open(self.path("shell/" + name), "rb") as a, open(self.path("python/" + name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)


if __name__ == "__main__":
    unittest.main()
