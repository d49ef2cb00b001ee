/* Keeps an open page up to date: asks every other second for its main element and puts it in where
   it has changed. What the reader has switched off, ticked, unfolded or sorted stays so.
   No ampersand and no opening angle bracket here: the page is well-formed XML too. */
(function () {
    'use strict';
    var script = document.currentScript;
    var url = script.getAttribute('data-from'), tag = script.getAttribute('data-tag');
    var sign = null, updates = 0, order = null;

    function say(word) {
        if (!sign) {
            sign = document.createElement('div');
            sign.id = 'live';
            sign.setAttribute('role', 'status');
            sign.style.cssText = 'position:fixed;right:.8rem;bottom:.6rem;padding:.1rem .6rem;border-radius:1rem;' +
                'font-size:.8rem;background:var(--paper);border:1px solid var(--line);color:var(--soft)';
            document.body.appendChild(sign);
        }
        sign.textContent = word;
        if (url.startsWith('/body')) {
            var link = document.createElement('a');
            link.href = '/';
            link.textContent = 'all runs';
            sign.append(' \u00b7 ', link);
        }
        sign.setAttribute('data-updates', updates);
    }

    function keysOf(selector, name) {
        return Array.from(document.querySelectorAll(selector)).map(function (part) {
            return part.getAttribute(name);
        });
    }

    /* A cell's value: a number, or a word where it is none. */
    function valueOf(row, column) {
        var text = row.children[column].getAttribute('data-value');
        return text === 'nan' ? -Infinity : isNaN(Number(text)) ? text : Number(text);
    }

    /* Numbers from the largest on, words from A on; clicked again, the other way round. */
    function sort() {
        var table = document.querySelector('#list table');
        if (!table || !order) return;
        var body = table.tBodies[0], rows = Array.from(body.rows);
        rows.sort(function (one, other) {
            var a = valueOf(one, order.column), b = valueOf(other, order.column);
            if (a === b) return 0;
            return ((a > b) === (typeof a === 'string') ? 1 : -1) * (order.isTurned ? -1 : 1);
        });
        body.append.apply(body, rows);
        table.querySelectorAll('thead th').forEach(function (head, k) {
            if (k === order.column) head.setAttribute('aria-sort', order.isTurned ? 'ascending' : 'descending');
            else head.removeAttribute('aria-sort');
        });
    }

    function swap(text) {
        var off = keysOf('.entry.off', 'data-group'), ticked = keysOf('input:checked', 'value');
        var unfolded = keysOf('details[open]', 'id');
        var page = new DOMParser().parseFromString(text, 'text/html');
        var fresh = page.querySelector('main'), old = document.querySelector('main');
        if (!fresh) return;
        old.replaceWith(document.adoptNode(fresh));
        document.querySelectorAll('.entry,.curve').forEach(function (part) {
            if (off.includes(part.getAttribute('data-group'))) part.classList.add('off');
        });
        document.querySelectorAll('input[type=checkbox]').forEach(function (box) {
            box.checked = ticked.includes(box.value);
        });
        document.querySelectorAll('details').forEach(function (part) {
            part.open = unfolded.includes(part.id);
        });
        sort();
        updates += 1;
    }

    function ask() {
        if (document.hidden) return Promise.resolve();
        return fetch(url, { cache: 'no-store', headers: { 'If-None-Match': tag } })
            .then(function (answer) {
                if (answer.status === 304) return say('live');
                if (!answer.ok) return say('these runs are gone');
                tag = answer.headers.get('ETag');
                return answer.text().then(function (text) {
                    swap(text);
                    say('live');
                });
            })
            .catch(function () { say('the server does not answer'); });
    }

    function again() {
        ask().then(function () { setTimeout(again, 2000); });
    }
    document.addEventListener('click', function (event) {
        var button = event.target.closest ? event.target.closest('button.sort') : null;
        if (!button) return;
        var column = button.parentNode.cellIndex;
        var isSame = order ? order.column === column : false;
        order = { column: column, isTurned: isSame ? !order.isTurned : false };
        sort();
    });
    document.addEventListener('DOMContentLoaded', again);
}());
