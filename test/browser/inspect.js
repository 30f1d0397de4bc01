// What a person would see of the page, as an object. It is evaluated over DevTools,
// which the page's policy does not keep from running scripts.
(() => {
	const round = (n) => Math.round(n * 10) / 10;
	const short = (s) => s.replace(/\s+/g, ' ').trim().slice(0, 80);
	const name = (e) => {
		let n = e.localName;
		if (e.id) n += '#' + e.id;
		const classes = e.getAttribute('class');
		if (classes) n += '.' + classes.trim().split(/\s+/).join('.');
		return n;
	};
	const fold = window.innerHeight;
	const pageWidth = document.documentElement.clientWidth;

	// Colours, as [red, green, blue, alpha] from 0 to 1. Drawing one converts it from
	// any notation.
	const canvas = document.createElement('canvas');
	canvas.width = canvas.height = 1;
	const pen = canvas.getContext('2d', { willReadFrequently: true });
	const colours = new Map();
	const colour = (text) => {
		if (!colours.has(text)) {
			pen.clearRect(0, 0, 1, 1);
			pen.fillStyle = text;
			pen.fillRect(0, 0, 1, 1);
			colours.set(text, [...pen.getImageData(0, 0, 1, 1).data].map((c) => c / 255));
		}
		return colours.get(text);
	};
	const over = (top, bottom) => {
		const mix = (i) => top[i] * top[3] + bottom[i] * (1 - top[3]);
		return [mix(0), mix(1), mix(2), 1];
	};
	const luminance = (c) => {
		const [r, g, b] = c.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ratio = (a, b) => {
		const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
		return (high + 0.05) / (low + 0.05);
	};
	// The colour of a page that paints no background.
	const probe = document.createElement('div');
	probe.style.color = 'Canvas';
	document.documentElement.append(probe);
	const paper = colour(getComputedStyle(probe).color);
	probe.remove();

	// What an element paints on: its own background, those of its ancestors behind it,
	// and the paper.
	const styles = new Map();
	const style = (e) => {
		if (!styles.has(e)) styles.set(e, getComputedStyle(e));
		return styles.get(e);
	};
	const pictures = new Set();
	const grounds = new Map();
	const ground = (e) => {
		if (!e) return paper;
		if (!grounds.has(e)) {
			const s = style(e);
			if (s.backgroundImage !== 'none') pictures.add(name(e));
			let own = colour(s.backgroundColor);
			if (e.ownerSVGElement) own = [0, 0, 0, 0];
			grounds.set(e, over(own, ground(e.parentElement)));
		}
		return grounds.get(e);
	};
	const opacities = new Map();
	const opacity = (e) => {
		if (!e) return 1;
		if (!opacities.has(e)) opacities.set(e, Number(style(e).opacity) * opacity(e.parentElement));
		return opacities.get(e);
	};

	// The part of the plane in which an element's content is painted, and the innermost
	// element that cuts it off there.
	const everything = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity, by: null, scrolls: false };
	const windows = new Map();
	// What is placed freely is in the pane of what it is placed in.
	const around = (e) => (style(e).position === 'absolute' ? e.offsetParent : e.parentElement);
	const pane = (e) => {
		if (!e || e === document.documentElement || e === document.body) return everything;
		if (!windows.has(e)) {
			let w = pane(around(e));
			const s = style(e);
			const cuts = s.display !== 'inline' && (s.overflowX !== 'visible' || s.overflowY !== 'visible');
			const clipped = s.clipPath !== 'none' || s.clip !== 'auto';
			if (cuts || clipped) {
				const b = e.getBoundingClientRect();
				const box = clipped ? { left: b.left, top: b.top, right: b.left, bottom: b.top } : b;
				const scrolls = /auto|scroll/.test(s.overflowX + s.overflowY);
				w = {
					left: Math.max(w.left, box.left), top: Math.max(w.top, box.top),
					right: Math.min(w.right, box.right), bottom: Math.min(w.bottom, box.bottom),
					by: clipped ? null : e, scrolls: scrolls || w.scrolls, hidden: clipped || w.hidden,
				};
			}
			windows.set(e, w);
		}
		return windows.get(e);
	};

	// The elements, and the texts, that are not folded away, in the order of the page.
	const unfolded = [], texts = [];
	const collect = (e) => {
		unfolded.push(e);
		for (const child of e.childNodes) {
			if (child.nodeType === Node.TEXT_NODE && child.data.trim()) texts.push(child);
			if (child.nodeType !== Node.ELEMENT_NODE) continue;
			if (e.localName !== 'details' || e.open || child.localName === 'summary') collect(child);
		}
	};
	collect(document.body);
	const matching = (selector) => unfolded.filter((e) => e.matches(selector));

	const shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
	const block = (e) => {
		while (e.parentElement && style(e).display.startsWith('inline')) e = e.parentElement;
		return e;
	};

	const report = {
		width: document.scrollingElement.scrollWidth, title: document.title, lang: document.documentElement.lang, fold: '',
		text: document.body.innerText, contrast: [], contrasts: 0, clipped: [], overlaps: [], small: [], targets: [], faint: [], wide: [],
	};
	for (const e of unfolded) {
		const r = e.getBoundingClientRect();
		if (r.width && r.right > pageWidth + 1 && shown(e) && pane(around(e)).right > pageWidth + 1) report.wide.push(`${name(e)} "${short(e.textContent).slice(0, 40)}"`);
	}

	// Text, line by line.
	const lines = [];
	const pieces = [];
	for (const node of texts) {
		const e = node.parentElement;
		if (['script', 'style', 'template', 'title', 'desc'].includes(e.localName)) continue;
		if (!shown(e)) continue;
		const range = document.createRange();
		range.selectNodeContents(node);
		// What is to the left of the page is shown when it gets the focus.
		const rects = [...range.getClientRects()].filter((r) => r.width > 0 && r.height > 0 && r.right > 0);
		if (!rects.length) continue;
		const w = pane(e);
		// Text for those alone who do not see: it is cut off on purpose.
		if (w.hidden || w.right - w.left <= 1 || w.bottom - w.top <= 1) continue;

		const s = style(e);
		const size = parseFloat(s.fontSize);
		const ink = colour(e.ownerSVGElement ? s.fill : s.color);
		const behind = ground(e);
		const contrast = ratio(over([ink[0], ink[1], ink[2], ink[3] * opacity(e)], behind), behind);
		const large = size >= 24 || (size >= 18.66 && Number(s.fontWeight) >= 700);
		report.contrasts++;
		if (contrast < (large ? 3 : 4.5)) report.contrast.push(`${contrast.toFixed(2)} of "${short(node.data)}" in ${name(e)}`);
		// In a drawing, the size on the screen counts.
		const scale = e.ownerSVGElement && e.getScreenCTM ? e.getScreenCTM().a : 1;
		if (size * scale < 10) report.small.push(`${round(size * scale)}px "${short(node.data)}" in ${name(e)}`);

		for (const r of rects) {
			const beyond = r.left < w.left - 1 || r.right > w.right + 1 || r.top < w.top - 1 || r.bottom > w.bottom + 1;
			if (beyond && !w.scrolls) report.clipped.push(`"${short(node.data)}" in ${name(e)}, by ${w.by ? name(w.by) : 'nothing'}`);
			if (!beyond && (r.left < -1 || r.right > pageWidth + 1)) report.clipped.push(`"${short(node.data)}" in ${name(e)}, by the page's edge`);
			if (!beyond) lines.push({ left: r.left, right: r.right, top: r.top, bottom: r.bottom, node, text: short(node.data), name: name(e) });
		}

		// What of it is above the fold: the longest beginning whose last line is.
		if (rects[0].bottom <= fold && rects[0].top >= 0) {
			let low = 0, high = node.data.length;
			while (low < high) {
				const middle = Math.ceil((low + high) / 2);
				range.setEnd(node, middle);
				const seen = [...range.getClientRects()];
				if (!seen.length || seen[seen.length - 1].bottom <= fold) low = middle;
				else high = middle - 1;
			}
			pieces.push({ text: node.data.slice(0, low), block: block(e) });
		}
	}
	pieces.forEach((p, i) => { report.fold += (i && p.block !== pieces[i - 1].block ? '\n' : '') + p.text; });

	// Lines that are painted on one another. Glyphs leave some of a line free.
	lines.sort((a, b) => a.top - b.top);
	for (let i = 0; i < lines.length && report.overlaps.length < 10; i++) {
		for (let j = i + 1; j < lines.length && lines[j].top < lines[i].bottom; j++) {
			const a = lines[i], b = lines[j];
			if (a.node === b.node) continue;
			const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
			const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
			if (x > 2 && y > 0.35 * Math.min(a.bottom - a.top, b.bottom - b.top)) {
				report.overlaps.push(`"${a.text}" in ${a.name} and "${b.text}" in ${b.name}`);
			}
		}
	}

	// What can be tapped.
	for (const e of matching('a[href], button, summary, input, select, textarea, [tabindex]')) {
		if (!shown(e)) continue;
		const r = e.getBoundingClientRect();
		if (!r.width || !r.height || r.right <= 0) continue;
		// A link within a sentence is as high as the sentence's line.
		const inline = style(e).display === 'inline' && e.parentElement.textContent.trim().length > e.textContent.trim().length;
		report.targets.push({ name: `${name(e)} "${short(e.textContent)}"`, width: round(r.width), height: round(r.height), inline });
	}

	// What a drawing shows stands out from what is behind it.
	for (const e of matching('svg rect, svg path, svg circle, svg line')) {
		if (!shown(e) || e.matches('.grid')) continue;
		const behind = ground(e);
		const best = Math.max(...['fill', 'stroke'].filter((p) => style(e)[p] !== 'none').map((p) => ratio(over(colour(style(e)[p]), behind), behind)));
		if (best < 3) report.faint.push(`${best.toFixed(2)} of ${name(e)} in ${name(e.ownerSVGElement)}`);
	}

	report.links = [...document.querySelectorAll('a[href]:not([href^="#"])')].map((e) => e.href);
	report.gradients = [...pictures];
	report.hostile = typeof window.hostile !== 'undefined';
	return report;
})()
