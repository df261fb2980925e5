// Makes elements. Text always becomes a text node, so nothing that a draft says is ever read as markup.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

const html = window.trustedTypes
  ? window.trustedTypes.createPolicy("sanitised-by-server", { createHTML: (text) => text })
  : { createHTML: (text) => text };

// The only place where text becomes markup: the server has sanitised it.
export function sanitised(properties, text) {
  const made = element("div", properties);
  made.innerHTML = html.createHTML(text);
  return made;
}
