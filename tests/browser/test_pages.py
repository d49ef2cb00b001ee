#!/usr/bin/env python3
"""tests/browser/test_pages.py PROGRAM: pages of every kind (report, serve, compare, sweep, reproduce) in a
headless Chromium. They render without a complaint on the console, at the width of a desk and of a phone, with
nothing clipped and nothing to scroll sideways; their curves are the numbers of metrics.jsonl; a page that is
open follows a run that trains."""
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
OPTIONS = ("dataset = shapes\ntrain-samples = 400\ntest-samples = 100\nmodel = mlp:8\nagents = 4\n"
           "batch-size = 20\nepochs = 2\nseeds = 1,2\n")
WIDTHS = {"desk": 1400, "phone": 390}
# What is clipped or too wide, with everything unfolded. A table on a desk may scroll inside its frame.
PROBE = """(() => {
  const bad = [], said = part => (part.textContent || '').trim().slice(0, 50);
  document.querySelectorAll('details').forEach(part => { part.open = true; });
  document.querySelectorAll('svg.figure').forEach(svg => {
    const frame = svg.getBoundingClientRect();
    if (frame.width < 100 || frame.height < 80) bad.push('too small: ' + svg.id);
    svg.querySelectorAll('text').forEach(text => {
      const r = text.getBoundingClientRect();
      if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
        bad.push('clipped in ' + svg.id + ': ' + said(text));
    });
  });
  document.querySelectorAll('body *:not(svg):not(svg *)').forEach(part => {
    const style = getComputedStyle(part);
    if (style.display === 'inline' || style.display === 'none' || !part.clientWidth) return;
    if (part.scrollWidth > part.clientWidth + 1 && (innerWidth < 600 || style.overflowX !== 'auto'))
      bad.push('wider than its place: ' + part.tagName + ' ' + part.className + ': ' + said(part));
  });
  document.querySelectorAll('.alarm, .reason').forEach(part => part.remove()); // messages are what they are
  const odd = document.body.innerText.match(/\\b(NaN|nan|undefined|Infinity)\\b/g) || [];
  return bad.concat(odd).slice(0, 8);
})()"""


def crosstalk(words, expected=0):
    done = subprocess.run([PROGRAM, *words.split()], capture_output=True, text=True, check=False)
    assert done.returncode == expected, f"crosstalk {words}: {done.returncode}: {done.stderr}"


def page_of(folder):
    return "file://" + os.path.abspath(f"{folder}/report.html")


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
    """Opens a page at both widths and looks for flaws."""
    for name, width in WIDTHS.items():
        browser.open(url, width)
        wide = browser.value("document.documentElement.scrollWidth")
        assert wide <= width, f"{name}: {wide} pixels wide"
        flaws = browser.value(PROBE)
        assert flaws == [], f"{name}: {flaws}"
        assert not browser.complaints, browser.complaints


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


def text_of(browser, selector):
    return browser.value(f"(document.querySelector('{selector}') || {{}}).innerText || ''")


def alarms(browser):
    """What the page that is open says of runs that went wrong."""
    browser.call("Page.reload")
    browser.wait_for("document.readyState === 'complete' && document.querySelector('.alarm') !== null")
    return browser.value("[...document.querySelectorAll('p.alarm')].map(p => p.innerText).join(' ')")


def a_run_that_diverged_looks_right(browser):
    crosstalk(f"train {TINY} --out broken --epochs 3 --lr 1e5", expected=1)
    lines = metrics("broken")
    with open("broken/metrics.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps({**lines[-1], "epoch": 2, "ce": None, "consensus_accuracy": None}) + "\n")
    report(browser, "broken")
    assert curve(browser, "fig-accuracy")[0] == [1]
    message = alarms(browser)
    assert "diverged at iteration" in message and "lower --lr" in message, message


def a_run_that_failed_says_why(browser):
    shutil.copytree("one", "failed")
    os.remove("failed/summary.json")
    with open("failed/failed.json", "w", encoding="utf-8") as file:
        json.dump({"message": "a/very/long/path/without/any/blank/" + 12 * "folder/" + "train.gz: cut short; check @data-dir",
                   "iteration": 9, "agent": None, "options": {}}, file)
    report(browser, "failed")
    message = alarms(browser)
    assert "failed at iteration 9" in message and "--data-dir" in message, message
    report(browser, "failed broken two qg one")
    assert "failed at" in alarms(browser) and "diverged at" in alarms(browser)


def runs_of_sites_look_right(browser):
    for name, other in (("north", "south-east-hospital"), ("south-east-hospital", "north")):
        run = f"sites/{name}"
        train(run, f"--epochs 3 --algorithm ccl --seed 1 --lr 0.0{len(name)}")
        os.remove(run + "/summary.json")
        with open(run + "/site.json", "w", encoding="utf-8") as file:
            json.dump({"federation": "lungs", "site": name, "phase": "training", "iteration": 40, "n_iterations": 90,
                       "time": 1794983027, "heartbeat_s": 2, "refused_strangers": 3,
                       "neighbours": [{"name": other, "is_connected": False, "phase": "gone", "iteration": 4,
                                       "for_s": 27.0, "losses": 5, "bytes_sent": 2097152, "bytes_received": 1024,
                                       "rtt_ms": 0.5, "note": "lost: the connection was closed by the other side"}]},
                      file)
        with open(run + "/sent.jsonl", "w", encoding="utf-8") as file:
            file.write(json.dumps({"to": other, "kind": "parameters", "letters": 1, "bytes": 1048576}) + "\n")
    report(browser, "sites/north")
    report(browser, "sites")
    assert "north of lungs: training" in text_of(browser, "#neighbours")


def studies_look_right(browser):
    """Beside published numbers, ranked, over one option, over two and over three."""
    with open("toy.conf", "w", encoding="utf-8") as file:
        file.write("title = A toy\nrows = agents | method\n[options]\n" + OPTIONS +
                   "[column alpha = 0.1]\nalpha = 0.1\n[column alpha = 1]\nalpha = 1\n"
                   "[row 4 | DSGDm-N]\nalgorithm = dsgdm\npaper = 12.5 +- 3\n"
                   "[row 4 | CCL]\nalgorithm = ccl\npaper = 20.5 +- 1 | 13\n[row 4 | wild]\nlr = 1e6\n")
    crosstalk("reproduce toy.conf --quiet --out toy")
    looks_right(browser, page_of("toy"))
    assert browser.value("document.querySelectorAll('#study svg.figure').length") == 2
    assert "diverged" in alarms(browser)
    crosstalk(f"compare {TINY} --epochs 2 --algorithms local,dsgd,dsgdm,qg-dsgdm,ccl,gt,mt+ccl,dsgdm:lr=1e6 --out compared")
    looks_right(browser, page_of("compared"))
    values = browser.value("[...document.querySelectorAll('#figure-1 .dot')].map(d => Number(d.dataset.value))")
    assert len(values) == 7 and values == sorted(values, reverse=True), values
    assert "Momentum tracking + CCL" in text_of(browser, "#study-table")
    crosstalk(f"sweep {TINY} --epochs 2 --algorithm ccl --lr 0.001,0.01,0.1 --out swept1")
    looks_right(browser, page_of("swept1"))
    assert browser.value("document.querySelector('#figure .curve').getAttribute('data-x')") == "0.001 0.01 0.1"
    crosstalk(f"sweep {TINY} --epochs 1 --algorithm ccl --lambda-m 1,.1,.01 --lambda-d 1,.1,.01,.001 --out swept2")
    looks_right(browser, page_of("swept2"))
    assert browser.value("document.querySelectorAll('#figure .cell').length") == 12
    assert browser.value("document.querySelectorAll('#figure .cell[data-best]').length") >= 1
    crosstalk(f"sweep {TINY} --epochs 1 --algorithm ccl,dsgdm --momentum 0.5,0.9 --lr .1,.01 --out swept3")
    looks_right(browser, page_of("swept3"))


def a_method_has_one_colour_on_all_pages(browser):
    colours = {}
    for url, figure in ((page_of("toy"), "#figure-1"), (page_of("compared"), "#figure-1"),
                        (page_of("swept1"), "#figure")):
        browser.open(url)
        found = "'.dot[data-kind=ours] .marker, .curve'"
        marks = browser.value(f"[...document.querySelector('{figure}').querySelectorAll({found})].map(m => [m.dataset.label || "
                              "m.textContent, m.getAttribute('fill') || m.querySelector('.line').getAttribute('stroke')])")
        assert marks, figure
        for label, colour in marks:
            colours.setdefault(label.split(",")[0], set()).add(colour)
    assert colours["CCL"] == {"#d55e00"} and len(colours["DSGDm-N"]) == 1, colours
    assert colours["CCL"].isdisjoint(colours["DSGDm-N"]), colours


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
        browser.open(url + "/report")  # as it is before anybody has unfolded anything
        assert browser.value("document.querySelectorAll('[id^=fig-accuracy-] .curve').length") == 8
        assert browser.value("document.querySelectorAll('#fig-accuracy-1 .curve').length") == 4
        browser.value("document.getElementById('setting-2').open = true")
        with open(run, "w", encoding="utf-8") as file:
            file.writelines(lines)
        browser.wait_for("document.querySelector('#live[data-updates=\"1\"]') !== null")
        assert browser.value("document.getElementById('setting-2').open") is True
        assert browser.value("document.getElementById('setting-1').open") is False


def an_empty_list_says_what_to_do(browser):
    os.makedirs("empty")
    with serving("empty") as (_, url):
        looks_right(browser, url)
        assert "crosstalk train" in text_of(browser, "#nothing pre") and "--out empty/" in text_of(browser, "#nothing pre")
        shutil.copytree("one", "empty/first")
        browser.wait_for("document.querySelectorAll('#list tbody tr').length === 1")


def the_list_shows_what_is_there_and_what_is_broken(browser):
    os.makedirs("mixed/bad")
    for run in ("broken", "failed"):
        shutil.copytree(run, f"mixed/{run}")
    shutil.copytree("two", "mixed/good")
    shutil.copytree("one", "outside")
    os.symlink(os.path.abspath("outside"), "mixed/link")
    for name in ("config.txt", "metrics.jsonl"):
        with open(f"mixed/bad/{name}", "w", encoding="utf-8") as file:
            file.write("{ this is no metrics file\n\n")
    with serving("mixed") as (_, url):
        looks_right(browser, url)
        assert browser.value("document.querySelectorAll('#list tbody tr').length") == 3
        browser.open(url)
        assert "lower --lr" in text_of(browser, "#list") and "--data-dir" in text_of(browser, "#list")
        for _ in range(2):  # clicked again, the other way round
            browser.value("[...document.querySelectorAll('button.sort')].find(b => b.textContent === 'run').click()")
        runs = browser.value("[...document.querySelectorAll('#list td[data-th=run]')].map(td => td.innerText)")
        assert runs == ["good/seed-1", "failed", "broken"], runs
        assert "mixed/bad" in text_of(browser, "#list")
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
         a_run_that_diverged_looks_right, a_run_that_failed_says_why, runs_of_sites_look_right, studies_look_right,
         a_method_has_one_colour_on_all_pages, many_agents_look_right, an_open_page_follows_a_run_that_trains,
         what_is_unfolded_stays_so, an_empty_list_says_what_to_do, the_list_shows_what_is_there_and_what_is_broken]


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
