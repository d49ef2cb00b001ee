#!/usr/bin/env python3
"""tests/browser/test_pages.py PROGRAM: the pages of `crosstalk report` and `crosstalk serve` in a headless
Chromium. They render without a complaint on the console, at the width of a desk and of a phone; their
curves are the numbers of metrics.jsonl; a page that is open follows a run that trains."""
import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import urllib.error
import urllib.request

import chromium

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) == 2 else None
TINY = "--dataset shapes --train-samples 400 --test-samples 100 --model mlp:8 --agents 4 --batch-size 20 --quiet"
WIDTHS = {"desk": 1280, "phone": 390}


def crosstalk(words, expected=0):
    done = subprocess.run([PROGRAM, *words.split()], capture_output=True, text=True, check=False)
    assert done.returncode == expected, f"crosstalk {words}: {done.returncode}: {done.stderr}"


def train(out, words):
    crosstalk(f"train {TINY} --out {out} {words}")


def metrics(run):
    with open(f"{run}/metrics.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def curve(browser, figure, group=0):
    """Its points as the page has them."""
    found = f"document.querySelector('#{figure} .curve[data-group=\"{group}\"]')"
    return [[float(v) for v in browser.value(f"{found}.getAttribute('data-{axis}')").split()] for axis in "xy"]


def looks_right(browser, url):
    """Opens a page at both widths: no complaint, nothing hangs over the edge, every figure is to be seen."""
    for name, width in WIDTHS.items():
        browser.open(url, width)
        assert not browser.complaints, browser.complaints
        wide = browser.value("document.documentElement.scrollWidth")
        assert wide <= width, f"{name}: {wide} pixels wide"
        flat = browser.value("[...document.querySelectorAll('svg.figure')].filter(s => {const r = "
                             "s.getBoundingClientRect(); return r.width < 100 || r.height < 80})"
                             ".map(s => s.id)")
        assert flat == [], f"{name}: too small: {flat}"
        odd = browser.value("(document.body.innerText.match(/\\b(NaN|nan|undefined|Infinity|inf)\\b/g) || []).length")
        assert odd == 0, f"{name}: {odd} words like NaN"


def report(browser, runs, out="report.html"):
    crosstalk(f"report {runs} --out {out} --force")
    looks_right(browser, "file://" + os.path.abspath(out))


@contextlib.contextmanager
def serving(directory):
    server = subprocess.Popen([PROGRAM, "serve", directory, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        yield server, server.stdout.readline().split("/ (")[0].split(": ", 1)[1]
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0, "serve ends with exit code 0"
        server.stdout.close()


def curves_are_the_numbers_of_the_metrics(browser):
    train("two", "--epochs 3 --algorithm ccl --seeds 1,2")
    report(browser, "two")
    seeds = [metrics("two/seed-1"), metrics("two/seed-2")]
    for figure, name in (("fig-accuracy", "consensus_accuracy"), ("fig-ce", "ce"), ("fig-mv", "mv"),
                         ("fig-dv", "dv"), ("fig-distance", "consensus_distance")):
        x, y = curve(browser, figure)
        wanted = [sum(lines[k][name] for lines in seeds) / 2 for k in range(3)]
        assert x == [1, 2, 3], f"{figure}: {x}"
        assert all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(y, wanted)), f"{figure}: {y} {wanted}"


def runs_lie_over_each_other(browser):
    train("qg", "--epochs 3 --algorithm qg-dsgdm --seeds 1,2")
    report(browser, "two qg")
    assert browser.value("document.querySelectorAll('#fig-accuracy .curve').length") == 2
    browser.value("document.querySelector('.entry').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert browser.value("document.querySelectorAll('#fig-accuracy .curve.off').length") == 1


def a_run_of_one_epoch_looks_right(browser):
    train("one", "--epochs 1")
    report(browser, "one")
    assert curve(browser, "fig-accuracy")[0] == [1]


def a_run_that_diverged_looks_right(browser):
    crosstalk(f"train {TINY} --out broken --epochs 3 --lr 1e5", expected=1)
    lines = metrics("broken")
    with open("broken/metrics.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps({**lines[-1], "epoch": 2, "ce": None, "consensus_accuracy": None}) + "\n")
    report(browser, "broken")
    assert curve(browser, "fig-accuracy")[0] == [1]


def many_agents_look_right(browser):
    crosstalk("train --dataset shapes --train-samples 2560 --test-samples 100 --model logistic --agents 256 "
              "--topology torus --batch-size 5 --epochs 2 --out many --quiet")
    report(browser, "many")
    assert browser.value("document.querySelectorAll('#fig-graph-1 circle').length") >= 256


def an_open_page_follows_a_run_that_trains(browser):
    train("live/a", "--epochs 4")
    lines = metrics("live/a")
    os.remove("live/a/summary.json")

    def put(n):
        with open("live/a/metrics.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines[:n])

    put(2)
    with serving("live") as (server, url):
        looks_right(browser, url)
        looks_right(browser, url + "/report")
        assert curve(browser, "fig-accuracy")[0] == [1, 2]
        put(3)
        browser.wait_for("document.querySelector('#fig-accuracy .curve').getAttribute('data-x') === '1 2 3'")
        put(4)
        browser.wait_for("document.querySelector('#fig-accuracy .curve').getAttribute('data-x') === '1 2 3 4'")
        assert curve(browser, "fig-accuracy")[1] == [line["consensus_accuracy"] for line in lines]
        assert not browser.complaints, browser.complaints
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        browser.wait_for("document.getElementById('live').textContent.includes('does not answer')")
    browser.leave()


def what_is_unfolded_stays_so(browser):
    for number, (algorithm, alpha) in enumerate((a, b) for a in ("dsgd", "dsgdm", "gt", "d2") for b in (1, 10)):
        train(f"many-live/{number}", f"--epochs 2 --algorithm {algorithm} --partition dirichlet --alpha {alpha}")
    run = "many-live/0/metrics.jsonl"
    with open(run, encoding="utf-8") as file:
        lines = file.readlines()
    with open(run, "w", encoding="utf-8") as file:
        file.write(lines[0])
    with serving("many-live") as (_, url):
        looks_right(browser, url + "/report")
        assert browser.value("document.querySelectorAll('[id^=fig-accuracy-] .curve').length") == 8
        assert browser.value("document.querySelectorAll('#fig-accuracy-1 .curve').length") == 4
        browser.value("document.getElementById('setting-2').open = true")
        with open(run, "w", encoding="utf-8") as file:
            file.writelines(lines)
        browser.wait_for("document.getElementById('live').getAttribute('data-updates') === '1'")
        assert browser.value("document.getElementById('setting-2').open") is True
        assert browser.value("document.getElementById('setting-1').open") is False


def the_list_shows_what_is_there_and_what_is_broken(browser):
    os.makedirs("mixed/bad")
    shutil.copytree("two", "mixed/good")
    shutil.copytree("one", "outside")
    os.symlink(os.path.abspath("outside"), "mixed/link")
    for name in ("config.txt", "metrics.jsonl"):
        with open(f"mixed/bad/{name}", "w", encoding="utf-8") as file:
            file.write("{ this is no metrics file\n\n")
    with serving("mixed") as (_, url):
        looks_right(browser, url)
        assert browser.value("document.querySelectorAll('#list tbody tr').length") == 1
        assert "mixed/bad" in browser.value("document.querySelector('#list').innerText")
        browser.value("document.querySelector('#list a').click()")
        browser.wait_for("document.querySelector('#fig-accuracy .curve') !== null")
        for asked in ("/report?run=link", "/report?run=../outside", "/report?run=/etc", "/etc/passwd"):
            try:
                urllib.request.urlopen(url + asked).close()
                raise AssertionError(f"{asked} was answered")
            except urllib.error.HTTPError as error:
                assert error.code == 404, f"{asked}: {error.code}"
                error.close()


TESTS = [curves_are_the_numbers_of_the_metrics, runs_lie_over_each_other, a_run_of_one_epoch_looks_right,
         a_run_that_diverged_looks_right, many_agents_look_right, an_open_page_follows_a_run_that_trains,
         what_is_unfolded_stays_so,
         the_list_shows_what_is_there_and_what_is_broken]


def run_all():
    n_failed = 0
    with chromium.Browser() as browser:
        for test in TESTS:
            try:
                browser.complaints.clear()
                test(browser)
                print("ok  ", test.__name__)
            except Exception:  # whatever it is, the next test has its turn
                print("   ", traceback.format_exc().strip().replace("\n", "\n    "))
                print("FAIL", test.__name__)
                n_failed += 1
    print(f"{len(TESTS) - n_failed} passed, {n_failed} failed, 0 skipped")
    return n_failed


def main():
    if PROGRAM is None:
        sys.exit("usage: tests/browser/test_pages.py PROGRAM")
    if chromium.find() is None:
        print(f"    skipped: there is no Chromium\n0 passed, 0 failed, {len(TESTS)} skipped")
        return
    folder = tempfile.mkdtemp(prefix="crosstalk-pages-")
    os.chdir(folder)
    try:
        n_failed = run_all()
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if n_failed else 0)


if __name__ == "__main__":
    main()
