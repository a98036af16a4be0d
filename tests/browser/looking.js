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
    // What is cut off with an ellipsis is not seen beyond the window.
    const cut = (one) => {
      for (let box = one; box; box = box.parentElement) if (getComputedStyle(box).overflowX === "hidden" && !out(box.getBoundingClientRect())) return true;
      return false;
    };
    const found = all("body *")
      .filter((one) => !one.ownerSVGElement && drawn(one) && !kept(one) && !cut(one))
      .filter((one) => out(one.getBoundingClientRect()) || ownTexts(one).some(reach))
      .map(named);
    const wide = document.documentElement.scrollWidth;
    if (wide > innerWidth) found.unshift(`the page is ${wide} wide in ${innerWidth}`);
    return found.slice(0, 20);
  }

  // ---------------------------------------------------------------- can it be seen?

  function light(colour) {
    if (!colour.startsWith("rgb")) throw new Error(`cannot read ${colour}`);
    const [red, green, blue] = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  // What is tinted lets the ground behind it through.
  function behind(element) {
    const colour = getComputedStyle(element).backgroundColor;
    const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
    if (alpha === 1) return colour;
    const ground = behind(element.parentElement).match(/[\d.]+/g).map(Number);
    const mixed = [red, green, blue].map((part, place) => part * alpha + ground[place] * (1 - alpha));
    return `rgb(${mixed.join(", ")})`;
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
      if (target.matches("main")) return; // where a new screen begins
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

  async function unfold() {
    for (let round = 0; round < 4; round += 1) {
      for (const one of all("details:not([open])")) one.open = true;
      await pause();
    }
  }

  // A dot stands for no number: whoever points, tabs or listens learns why.
  function dots() {
    return all("main *").filter((one) => ownTexts(one).some((text) => text.data.trim() === "·"))
      .filter((one) => !(one.dataset.tip && one.tabIndex === 0 && /^not measured: ./.test(one.getAttribute("aria-label"))))
      .map(named);
  }

  // Sentences of our own: between full stops, within one block.
  function longest() {
    const blocks = all("main p, main li, main h1, main h2, main td, main figcaption, main summary").filter((one) => drawn(one) && !one.querySelector("p, li, ul, dl"));
    const found = blocks.flatMap((one) => words(one).split(/(?<=[.!?;]) /));
    return found.filter((text) => text.length > 140);
  }

  // Each colour of text with each ground that it stands on, by the names of page.css.
  function tokens() {
    const style = getComputedStyle(document.documentElement);
    const probe = document.body.appendChild(document.createElement("i"));
    const colour = (name) => { probe.style.color = style.getPropertyValue(name); return getComputedStyle(probe).color; };
    const pairs = [];
    const pair = (text, grounds, least) => { for (const ground of grounds) pairs.push([text, ground, least]); };
    for (const text of ["--ink", "--ink2", "--ink3"]) pair(text, ["--bg", "--card", "--sunk", "--acc-bg"], 4.5);
    pair("--acc", ["--bg", "--card", "--sunk", "--acc-bg"], 4.5);
    pair("--good", ["--bg", "--card", "--good-bg", "--acc-bg"], 4.5);
    pair("--bad", ["--bg", "--card", "--bad-bg", "--acc-bg"], 4.5);
    pair("--good-fill", ["--card", "--bg"], 3);
    pair("--bad-fill", ["--card", "--bg"], 3);
    const found = pairs.flatMap(([text, ground, least]) => {
      const [x, y] = [light(colour(text)), light(colour(ground))];
      const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
      return ratio < least ? [`${text} on ${ground}: ${ratio.toFixed(2)}`] : [];
    });
    probe.remove();
    return found;
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

  return { all, beyond, dots, faint, harm, longest, pause, tokens, turned, unfold, walked, watch };
})();
