// What the reviewer sees: the list of waiting drafts, one draft, and the forms to decide on it.

import { element, sanitised } from "./desk-dom.js";
import { REASONS, count, duration, local, money, utc, utcShort } from "./desk-words.js";

export function address(draft) {
  return `#/drafts/${encodeURIComponent(draft.drafter)}/${encodeURIComponent(draft.slot)}`;
}

export function listView(list, chosen, { more, refresh }) {
  const rows = list.drafts.map((draft) =>
    element(
      "li",
      {},
      element(
        "a",
        { href: address(draft), "aria-current": draft.run === chosen ? "true" : null },
        element("span", { class: "title", dir: "auto" }, draft.title ?? draft.run),
        element("span", { class: "facts" }, `${draft.drafter} · due ${utcShort(draft.slot)}`),
        element(
          "span",
          { class: "facts" },
          `waits ${duration(draft.waiting_seconds)} · ${money(draft.cost_nanousd)}`,
          draft.urgent ? element("span", { class: "badge" }, "urgent") : null,
          draft.expires === null ? null : element("span", { class: "facts" }, `expires ${utcShort(draft.expires)}`),
          draft.warnings ? element("span", { class: "badge" }, count(draft.warnings, "warning", "warnings")) : null,
        ),
      ),
    ),
  );
  const number = `${list.drafts.length}${list.next === null ? "" : "+"}`;
  return [
    element(
      "div",
      { class: "list-head" },
      element("h2", {}, list.drafts.length === 0 ? "Nothing waits" : `${number} waiting`),
      element("button", { type: "button", class: "quiet", onclick: refresh }, "Refresh"),
    ),
    list.drafts.length === 0
      ? element("p", { class: "facts" }, "No draft waits for a decision. New ones appear here by themselves.")
      : element("ul", { class: "drafts" }, rows),
    list.next === null ? null : element("button", { type: "button", onclick: more }, "Show more"),
    list.unreadable.length === 0
      ? null
      : element("p", { class: "warning" }, `Could not be read: ${list.unreadable.join(", ")}`),
  ].filter((part) => part !== null);
}

export function emptyView(hasDrafts) {
  return [
    element(
      "p",
      { class: "placeholder" },
      hasDrafts ? "Choose a draft from the list." : "When a schedule is due, its draft waits here for your decision.",
    ),
  ];
}

export function draftView(draft, actions) {
  const run = draft.run;
  const text = element("div", {}, sanitised({ class: "text", dir: "auto" }, draft.html));
  return [
    element("a", { class: "back", href: "#/" }, "← All waiting drafts"),
    element(
      "header",
      { class: "draft-head" },
      element("h2", { dir: "auto", tabindex: "-1" }, draft.title),
      element(
        "p",
        { class: "facts" },
        `${run.drafter} · due `,
        element("time", { datetime: run.slot }, utc(run.slot)),
        run.status === "pending" ? ` · waits ${duration(draft.waiting_seconds)}` : null,
      ),
    ),
    element(
      "div",
      { class: "columns" },
      element(
        "div",
        { class: "paper" },
        unreviewedView(run),
        warningsView(draft.warnings),
        text,
        attachmentsView(draft.attachments),
        exactView("The exact text (Markdown)", draft),
        draft.original === null ? null : exactView("The draft before the reviewer's edit", draft.original),
      ),
      element("div", { class: "beside" }, factsView(draft), sourcesView(draft.items)),
    ),
    run.status === "pending" ? decideView(draft, text, actions) : outcomeView(run),
  ];
}

function unreviewedView(run) {
  if (run.review !== "none") return null;
  return element("p", { class: "warning" }, "Nobody reviews this draft: it is sent unread (review = none).");
}

function warningsView(warnings) {
  if (warnings.length === 0) return null;
  return element(
    "aside",
    { class: "warning", "aria-label": "Warnings" },
    element("h3", {}, count(warnings.length, "warning", "warnings")),
    element("ul", {}, warnings.map((warning) => element("li", { dir: "auto" }, warning))),
  );
}

// Markdown can leave things out of sight, such as what stands in a table's row beyond its columns. This hides nothing.
function exactView(label, { title, body }) {
  return element(
    "details",
    { class: "exact" },
    element("summary", {}, label),
    element("p", { dir: "auto" }, element("strong", {}, title)),
    element("pre", { dir: "auto" }, body),
  );
}

function attachmentsView(attachments) {
  if (attachments.length === 0) return null;
  return element(
    "section",
    { class: "attachments", "aria-label": "Attachments" },
    element("h3", {}, `Goes with it: ${count(attachments.length, "attachment", "attachments")}`),
    attachments.map((one) =>
      element(
        "details",
        { open: one.rows === null },
        element("summary", {}, one.name, element("span", { class: "facts" }, ` ${one.media_type}, ${one.bytes} bytes`)),
        one.rows === null ? drawingView(one) : tableView(one.rows),
      ),
    ),
  );
}

// As an image a drawing runs no script and loads nothing, whatever stands in it.
function drawingView({ name, media_type, text }) {
  const place = URL.createObjectURL(new Blob([text], { type: media_type }));
  const forget = () => URL.revokeObjectURL(place);
  return element("img", { class: "drawing", src: place, alt: `The drawing ${name}`, onload: forget, onerror: forget });
}

function tableView([head, ...rows]) {
  const cells = (tag, row) => element("tr", {}, row.map((cell) => element(tag, { dir: "auto" }, cell)));
  return element(
    "div",
    { class: "wide" },
    element("table", {}, element("thead", {}, cells("th", head)), element("tbody", {}, rows.map((row) => cells("td", row)))),
  );
}

function factsView(draft) {
  const run = draft.run;
  const here = local(run.slot);
  const fact = (name, ...value) => [element("dt", {}, name), element("dd", {}, ...value)];
  return element(
    "section",
    { class: "card", "aria-label": "About this draft" },
    element("h3", {}, "About this draft"),
    element(
      "dl",
      {},
      fact("Goes to", goesTo(draft.channels)),
      fact("Due", utc(run.slot), here === null ? null : element("span", { class: "facts" }, ` (${here} here)`)),
      fact("Drafted", run.drafted === null ? "unknown" : utc(run.drafted)),
      fact("Model", draft.model),
      fact("Cost", money(run.cost_nanousd)),
      run.attempts > 1 ? fact("Attempts", String(run.attempts)) : [],
      run.expires === null ? [] : fact("Expires", `${utc(run.expires)}, if it is undecided then`),
      run.urgent ? fact("Urgent", "it stands before the others") : [],
    ),
  );
}

function goesTo(channels) {
  if (channels.length === 0) return "nowhere yet: it has no channel";
  return channels.map((channel) => element("span", { class: "channel" }, `${channel.kind}: ${channel.target}`));
}

function sourcesView(items) {
  if (items.length === 0) return null;
  return element(
    "section",
    { class: "card", "aria-label": "Sources" },
    element("h3", {}, `Made from ${count(items.length, "item", "items")}`),
    element("ol", { class: "sources" }, items.map((item) => element("li", {}, sourceView(item)))),
  );
}

function sourceView(item) {
  const known = [item.id, item.source, item.author, item.published === null ? null : utc(item.published)];
  return [
    element("p", { class: "title", dir: "auto" }, item.title),
    element("p", { class: "facts", dir: "auto" }, known.filter(Boolean).join(" · ")),
    item.link === null ? null : linkView(item),
    item.text === ""
      ? null
      : element("details", {}, element("summary", {}, "Its text"), element("pre", { dir: "auto" }, item.text)),
  ];
}

// The host is the browser's own reading of the address: it is where a click would lead.
function linkView(item) {
  const link = item.link_host !== null && URL.canParse(item.link) ? new URL(item.link) : null;
  if (link === null || !["http:", "https:"].includes(link.protocol)) {
    return element("p", { class: "link" }, `${item.link} (not a web address)`);
  }
  return element(
    "p",
    { class: "link" },
    element("span", { class: "host" }, link.host),
    " ",
    element("a", { href: link.href, target: "_blank", rel: "noopener noreferrer nofollow" }, link.href),
  );
}

export function decisionOf(run) {
  if (run.status === "expired" || run.status === "superseded") return `It is ${run.status}: ${run.detail}.`;
  if (run.decision === null) return `It is ${run.status}${run.reason === null ? "" : ` (${run.reason})`}.`;
  if (run.review === "none") return `Nobody reviewed it: it was let through unread, ${utc(run.decision.at)}.`;
  const { reviewer, at, edited, reason, words } = run.decision;
  const verdict = reason === null ? (edited ? "Edited and approved" : "Approved") : `Rejected (${REASONS[reason] ?? reason})`;
  return `${verdict} by ${reviewer}, ${utc(at)}.${words === "" ? "" : ` “${words}”`}`;
}

function outcomeView(run) {
  return element("section", { class: `outcome ${run.status}` }, element("p", { dir: "auto" }, decisionOf(run)));
}

// The bar at the foot of a draft. An edit is made where the text stands, beside its warnings and sources.
function decideView(draft, text, actions) {
  const bar = element("section", { class: "decide", "aria-label": "Decide" });
  const shown = [...text.childNodes];

  function choose() {
    actions.editing(false);
    text.replaceChildren(...shown);
    bar.replaceChildren(
      element(
        "div",
        { class: "buttons" },
        button("yes", "Approve", () => actions.approve()),
        button("plain", "Edit", edit),
        button("no", "Reject", reject),
        element("p", { class: "facts", dir: "auto" }, whereTo(draft.channels)),
      ),
    );
  }

  function edit() {
    const form = editForm(draft, actions);
    text.replaceChildren(form);
    bar.replaceChildren(
      element(
        "div",
        { class: "buttons" },
        element("button", { type: "submit", form: form.id, class: "yes" }, "Approve this edit"),
        button("quiet", "Cancel", choose),
        element("p", { class: "facts", dir: "auto" }, whereTo(draft.channels)),
      ),
    );
    form.elements[0].focus();
  }

  function reject() {
    const form = rejectForm(actions, choose);
    bar.replaceChildren(form);
    form.elements[0].focus();
  }

  choose();
  return bar;
}

function button(look, label, onclick) {
  return element("button", { type: "button", class: look, onclick }, label);
}

function whereTo(channels) {
  if (channels.length === 0) return "Approving only records it: it has no channel.";
  return `Approving sends it to ${channels.map((one) => `${one.kind}: ${one.target}`).join(", ")}.`;
}

function editForm(draft, actions) {
  const title = element("input", { id: "edit-title", value: draft.title, maxlength: "300", required: true, dir: "auto" });
  const body = element("textarea", { id: "edit-body", value: draft.body, maxlength: "60000", required: true, dir: "auto" });
  const changed = () => actions.editing(title.value !== draft.title || body.value !== draft.body);
  title.addEventListener("input", changed);
  body.addEventListener("input", changed);
  return element(
    "form",
    {
      id: "edit",
      class: "form",
      onsubmit: (event) => {
        event.preventDefault();
        actions.approve({ title: title.value, body: body.value });
      },
    },
    element("label", { for: title.id }, "Title"),
    title,
    element("label", { for: body.id }, "Text (Markdown)"),
    body,
  );
}

function rejectForm(actions, cancel) {
  const reason = element(
    "select",
    { id: "reject-reason", required: true },
    element("option", { value: "" }, "Choose a reason"),
    Object.entries(REASONS).map(([code, label]) => element("option", { value: code }, label)),
  );
  const words = element("textarea", { id: "reject-words", rows: "3", maxlength: "2000", dir: "auto" });
  return element(
    "form",
    {
      class: "form",
      onsubmit: (event) => {
        event.preventDefault();
        actions.reject({ reason: reason.value, words: words.value });
      },
    },
    element("label", { for: reason.id }, "Why not?"),
    reason,
    element("label", { for: words.id }, "In your words (optional)"),
    words,
    element(
      "div",
      { class: "buttons" },
      element("button", { type: "submit", class: "no" }, "Reject it"),
      button("quiet", "Cancel", cancel),
    ),
  );
}

export function conflictView(message, run, reload) {
  return [
    element("h2", {}, "Your decision did not take"),
    element("p", { dir: "auto" }, run.status === "pending" ? message : decisionOf(run)),
    element("p", {}, "Nothing of yours was stored. Text you were editing still stands below, to copy."),
    element("button", { type: "button", onclick: reload }, "Show it as it is now"),
  ];
}
