// What a test asks of a page, from within it. Put into every page before its own script.
"use strict";
window.looking = (() => {
  document.addEventListener("securitypolicyviolation", (event) =>
    window.tellRefusal(`${event.effectiveDirective}: ${event.blockedURI} ${event.sample}`));

  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const words = (element) => element.textContent.replace(/\s+/g, " ").trim();
  const named = (element) => {
    const name = element.tagName.toLowerCase();
    const style = element.getAttribute("class");
    return `<${name}${style ? ` class="${style}"` : ""}> ${words(element).slice(0, 60)}`;
  };
  const pause = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

  // Not hidden, not in closed details, not put beside the page for screen readers.
  function drawn(element) {
    if (!element.checkVisibility({ visibilityProperty: true })) return false;
    if (element.closest("details:not([open])") && !element.closest("summary")) return false;
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && box.right > 0;
  }

  const ownTexts = (element) => [...element.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());

  // ---------------------------------------------------------------- does it fit?

  function beyond() {
    const out = (box) => box.left < -0.5 || box.right > innerWidth + 0.5;
    const reach = (text) => {
      const range = document.createRange();
      range.selectNodeContents(text);
      return [...range.getClientRects()].some(out);
    };
    // What a wide table keeps to itself can be pushed sideways by keyboard, too.
    const kept = (one) => {
      const keeper = one.parentElement.closest("[tabindex='0']");
      return keeper && /auto|scroll/.test(getComputedStyle(keeper).overflowX) && !out(keeper.getBoundingClientRect());
    };
    const found = all("body *")
      .filter((one) => !one.ownerSVGElement && drawn(one) && !kept(one))
      .filter((one) => out(one.getBoundingClientRect()) || ownTexts(one).some(reach))
      .map(named);
    const wide = document.documentElement.scrollWidth;
    if (wide > innerWidth) found.unshift(`the page is ${wide} wide in ${innerWidth}`);
    return found.slice(0, 20);
  }

  function labels(svgs) {
    return svgs.flatMap((svg) => {
      const frame = svg.getBoundingClientRect();
      const title = `${words(svg.closest(".card").querySelector("h3"))}, ${svg.getAttribute("aria-label").slice(0, 20)}`;
      const texts = all("text", svg).map((one) => ({ text: one.textContent, box: one.getBoundingClientRect() }));
      return texts.flatMap(({ text, box }, place) => {
        const found = [];
        const inside = box.left >= frame.left - 1 && box.right <= frame.right + 1;
        if (!inside || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) found.push(`${title}: ${text} is cut off`);
        for (const other of texts.slice(place + 1)) {
          const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
          const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
          if (wide > 1 && high > 4) found.push(`${title}: ${text} and ${other.text} overlap`);
        }
        return found;
      });
    });
  }

  function outside(svgs) {
    return svgs.flatMap((svg) => {
      const frame = svg.getBoundingClientRect();
      return all("rect", svg).filter((one) => {
        const box = one.getBoundingClientRect();
        return box.left < frame.left - 0.5 || box.right > frame.right + 0.5 || box.width < 1;
      }).map((one) => one.dataset.tip);
    });
  }

  // ---------------------------------------------------------------- can it be seen?

  function light(colour) {
    if (!colour.startsWith("rgb")) throw new Error(`cannot read ${colour}`);
    const [red, green, blue] = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function behind(element) {
    let one = element;
    while (/, 0\)$|transparent/.test(getComputedStyle(one).backgroundColor)) one = one.parentElement;
    return getComputedStyle(one).backgroundColor;
  }

  function contrast(element, colour) {
    const [x, y] = [light(colour), light(behind(element))];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  }

  function faint() {
    return all("body *").filter((one) => ownTexts(one).length && drawn(one)).flatMap((one) => {
      const style = getComputedStyle(one);
      const ratio = contrast(one.ownerSVGElement || one, one.ownerSVGElement ? style.fill : style.color);
      return ratio < 4.5 ? [`${ratio.toFixed(2)} ${named(one)}`] : [];
    });
  }

  function dim(shapes) {
    const found = shapes.flatMap((one) => {
      const ratio = contrast(one.ownerSVGElement, getComputedStyle(one).fill);
      return ratio < 3 ? [`${ratio.toFixed(2)} ${one.getAttribute("class")}`] : [];
    });
    return [...new Set(found)];
  }

  // Words of our own, behind a name with U+202E in it, that run from right to left.
  function turned(elements, begins) {
    const at = (text, place) => {
      const range = document.createRange();
      range.setStart(text, place);
      range.setEnd(text, place + 1);
      return range.getBoundingClientRect();
    };
    return elements.flatMap((one) => {
      const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
      const found = [];
      for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        const begin = text.data.indexOf(begins);
        if (begin >= 0 && at(text, begin + 1).left < at(text, begin).left) found.push(text.data);
      }
      return found;
    });
  }

  // ---------------------------------------------------------------- can it be reached?

  const steps = { everything: [], reached: new Set(), unseen: [] };

  function watch() {
    steps.everything = all("a[href], button, input, select, summary, [tabindex='0']").filter((one) => one.matches(".skip") || drawn(one));
    document.addEventListener("focusin", ({ target }) => {
      steps.reached.add(target);
      const style = getComputedStyle(target);
      const box = target.getBoundingClientRect();
      const bar = document.querySelector("header");
      const covers = getComputedStyle(bar).position === "sticky" && !bar.contains(target) && !target.matches(".skip");
      const top = covers ? bar.getBoundingClientRect().bottom : 0;
      if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) steps.unseen.push(`not marked: ${named(target)}`);
      if (box.right <= 0 || box.bottom <= top + 1 || box.top >= innerHeight) steps.unseen.push(`out of sight: ${named(target)}`);
    });
    document.activeElement.blur();
    return steps.everything.length;
  }

  const walked = () => ({
    unreached: steps.everything.filter((one) => !steps.reached.has(one)).map(named),
    unseen: steps.unseen,
  });

  // ---------------------------------------------------------------- what does it say?

  async function follow(links) {
    const said = [];
    const go = async (hash) => {
      const arrived = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
      location.hash = hash;
      await arrived;
    };
    for (const link of links) {
      if (location.hash === link) await go("#summary");
      await go(link);
      await pause();
      said.push(document.querySelector("[role=status]").textContent);
    }
    return said;
  }

  function cells(table) {
    const columns = all("thead th", table).map(words);
    return all("tbody tr", table).filter((row) => row.cells.length === columns.length).map((row) => ({
      head: row.cells[0].firstChild ? row.cells[0].firstChild.textContent.trim() : "",
      by_column: Object.fromEntries([...row.cells].map((cell, place) => [columns[place], words(cell)])),
    }));
  }

  function facts(happening) {
    const names = all(":scope > .box dt, :scope > dl dt", happening);
    return Object.fromEntries(names.map((one) => [one.textContent, one.nextElementSibling.textContent]));
  }

  function lanes(svgs) {
    return Object.fromEntries(svgs.map((svg) =>
      [svg.parentElement.firstElementChild.textContent, all("rect", svg).map((one) => one.dataset.tip)]));
  }

  // What ran, what was made that could run, and what leads out of the page.
  function harm() {
    const links = all("[href]:not(link), [data-link]").map((one) => one.getAttribute("href") || one.dataset.link);
    const made = "img, iframe, object, embed, video, audio, base, template, form[action], link:not([rel=icon])";
    return {
      pwned: typeof window.pwned,
      elements: all(made).map(named),
      scripts: all("script:not([type='text/plain'])").length,
      handlers: all("*").flatMap((one) => one.getAttributeNames()).filter((name) => name.startsWith("on") || name === "srcdoc"),
      links: links.filter((link) => !link.startsWith("#")),
    };
  }

  return { all, beyond, cells, dim, facts, faint, follow, harm, labels, lanes, outside, pause, turned, walked, watch };
})();
