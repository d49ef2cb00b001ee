/* Read-outs where a curve is pointed at, and legends that switch curves off; the page is whole
   without it. It listens at the document, so that a new main element can be put in at any time.
   No ampersand and no opening angle bracket here: the page is well-formed XML too. */
(function () {
    'use strict';
    var box = null;

    function numbers(element, name) {
        var text = element.getAttribute(name);
        return text ? text.split(' ').map(Number) : [];
    }

    /* Where a value lies on an axis: 0 at one end, 1 at the other. */
    function place(facts, axis, value) {
        var from = Number(facts.getAttribute('data-' + axis + '-from'));
        var to = Number(facts.getAttribute('data-' + axis + '-to'));
        if (facts.getAttribute('data-' + axis + '-log') === '1')
            return Math.log(value / from) / Math.log(to / from);
        return (value - from) / (to - from);
    }

    function written(facts, axis, value) {
        var unit = facts.getAttribute('data-' + axis + '-unit');
        var divisor = Number(facts.getAttribute('data-' + axis + '-divisor'));
        var text = String(Number((value / divisor).toPrecision(5)));
        return unit ? text + ' ' + unit : text;
    }

    function nearest(facts, xs, part) {
        var best = -1, far = Infinity;
        xs.forEach(function (x, i) {
            var distance = Math.abs(place(facts, 'x', x) - part);
            if (far > distance) {
                far = distance;
                best = i;
            }
        });
        return best;
    }

    function clear() {
        if (box) box.hidden = true;
        document.querySelectorAll('.guide').forEach(function (guide) { guide.remove(); });
    }

    function addLine(text, isHead) {
        var line = document.createElement('div');
        line.textContent = text;
        if (isHead) line.style.fontWeight = '600';
        box.appendChild(line);
    }

    function drawGuide(svg, area, x) {
        var guide = document.createElementNS('http://www.w3.org/2000/svg', 'line');
        guide.setAttribute('class', 'guide');
        guide.setAttribute('x1', x);
        guide.setAttribute('x2', x);
        guide.setAttribute('y1', area[1]);
        guide.setAttribute('y2', area[1] + area[3]);
        svg.appendChild(guide);
    }

    function showBox(x, y) {
        box.hidden = false;
        var left = x + 16;
        if (left + box.offsetWidth > window.innerWidth - 8)
            left = Math.max(8, x - box.offsetWidth - 16);
        box.style.left = left + 'px';
        box.style.top = Math.max(8, y - box.offsetHeight - 12) + 'px';
    }

    /* Every curve's value at the point nearest to the pointer. */
    function readOut(svg, facts, event) {
        var area = numbers(facts, 'data-box'), frame = svg.getBoundingClientRect();
        var x = (event.clientX - frame.left) * svg.viewBox.baseVal.width / frame.width;
        var part = (x - area[0]) / area[2], shown = null;
        if (Math.abs(part - 0.5) > 0.53) return;
        if (!box) {
            box = document.createElement('div');
            box.id = 'readout';
            document.body.appendChild(box);
        }
        box.textContent = '';
        svg.querySelectorAll('.curve:not(.off)').forEach(function (curve) {
            var xs = numbers(curve, 'data-x'), ys = numbers(curve, 'data-y');
            var i = nearest(facts, xs, part);
            if (0 > i) return;
            if (shown === null) {
                shown = xs[i];
                addLine(facts.getAttribute('data-x-name') + ' ' + written(facts, 'x', shown), true);
            }
            addLine(curve.getAttribute('data-label') + ': ' + written(facts, 'y', ys[i]), false);
        });
        if (shown === null) return;
        drawGuide(svg, area, area[0] + area[2] * place(facts, 'x', shown));
        showBox(event.clientX, event.clientY);
    }

    function spelled(seconds) {
        var units = [[172800, 86400, ' days'], [7200, 3600, ' hours'], [120, 60, ' minutes'], [0, 1, ' s']];
        var unit = units.find(function (each) { return seconds >= each[0]; });
        return Math.floor(seconds / unit[1]) + unit[2];
    }

    /* How old it is what a site has told last. */
    function tellAges() {
        document.querySelectorAll('[data-told]').forEach(function (part) {
            var age = Math.max(0, Math.round(Date.now() / 1000 - Number(part.getAttribute('data-told'))));
            var late = Number(part.getAttribute('data-late'));
            var isLate = late ? age > late : false;
            part.textContent = ' (' + spelled(age) + ' ago' + (isLate ? ': it may have stopped' : '') + ')';
        });
    }
    tellAges();
    setInterval(tellAges, 1000);
    new MutationObserver(tellAges).observe(document.body, { childList: true });

    document.addEventListener('pointermove', function (event) {
        var svg = event.target.closest ? event.target.closest('svg.figure') : null;
        var facts = svg ? svg.querySelector('.facts') : null;
        clear();
        if (facts) readOut(svg, facts, event);
    });
    document.addEventListener('scroll', clear, { passive: true });
    document.documentElement.addEventListener('pointerleave', clear);

    document.addEventListener('click', function (event) {
        var entry = event.target.closest ? event.target.closest('.entry') : null;
        if (!entry) return;
        var key = '[data-group="' + entry.getAttribute('data-group') + '"]';
        var isOff = !entry.classList.contains('off');
        var parts = ['.curve', '.band', '.entry'].map(function (name) { return name + key; });
        document.querySelectorAll(parts.join(',')).forEach(function (part) {
            part.classList.toggle('off', isOff);
        });
    });
}());
