// The review desk's page: what is shown follows the address after the #, and decisions are POSTs alone.

import { deskApi } from "./desk-api.js";
import { element } from "./desk-dom.js";
import { cognitoSession, localSession } from "./desk-login.js";
import { address, conflictView, decisionOf, draftView, emptyView, listView } from "./desk-views.js";

const REFRESH_MILLISECONDS = 30_000;
const DRAFTS_ON_A_PAGE = 25;
const here = new URL(".", document.baseURI.split(/[?#]/)[0]).href;
const part = (id) => document.getElementById(id);

const desk = {
  api: null,
  session: null,
  list: { drafts: [], unreadable: [], next: null },
  draft: null,
  shownHash: "",
  edited: false,
  sending: false,
  lost: false,
};

function notice(...parts) {
  part("notice").replaceChildren(...parts.filter((one) => one !== null));
}

function alarm(...parts) {
  part("alert").replaceChildren(...parts);
  if (parts.length > 0) part("alert").scrollIntoView({ block: "nearest" });
}

function chosen() {
  const [, place, drafter, slot] = location.hash.replace(/^#/, "").split("/");
  if (place !== "drafts" || !drafter || !slot) return null;
  try {
    return { drafter: decodeURIComponent(drafter), slot: decodeURIComponent(slot) };
  } catch {
    return null;
  }
}

const runOf = (draft) => (draft === null ? null : `${draft.drafter}:${draft.slot}`);

function explain(error) {
  if (error.status === 401 && desk.session.remote) {
    desk.session.forget();
    alarm(
      element("p", {}, "Your sign-in has ended. What you were editing is lost when you sign in again: copy it first."),
      element("button", { type: "button", onclick: () => desk.session.begin() }, "Sign in"),
    );
    return;
  }
  if (error.status === 401) {
    alarm(element("p", {}, "This session has ended. Open the address that the running system prints."));
    return;
  }
  alarm(element("p", { dir: "auto" }, error.message));
}

function showList() {
  const focused = document.activeElement?.closest("#list a")?.getAttribute("href");
  part("list").replaceChildren(...listView(desk.list, runOf(chosen()), { more: showMore, refresh: loadList }));
  if (focused) part("list").querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  document.title = `${desk.list.drafts.length === 0 ? "" : `(${desk.list.drafts.length}) `}Galley review desk`;
  if (desk.draft === null && chosen() === null) part("draft").replaceChildren(...emptyView(desk.list.drafts.length > 0));
}

async function loadList() {
  try {
    desk.list = await desk.api.waiting(null);
    showList();
    if (desk.lost) alarm();
    desk.lost = false;
  } catch (error) {
    desk.lost = error.status === 0;
    explain(error);
  }
}

async function showMore() {
  try {
    const more = await desk.api.waiting(desk.list.next);
    desk.list = {
      drafts: [...desk.list.drafts, ...more.drafts],
      unreadable: [...desk.list.unreadable, ...more.unreadable],
      next: more.next,
    };
    showList();
  } catch (error) {
    explain(error);
  }
}

async function showDraft({ focus }) {
  const draft = chosen();
  part("desk").classList.toggle("reading", draft !== null);
  desk.edited = false;
  desk.draft = null;
  desk.shownHash = location.hash;
  showList();
  if (draft === null) {
    part("draft").replaceChildren(...emptyView(desk.list.drafts.length > 0));
    return;
  }
  try {
    const answer = await desk.api.read(draft);
    if (runOf(chosen()) !== runOf(draft)) return;
    desk.draft = answer;
    part("draft").replaceChildren(
      ...draftView(answer, {
        approve: (edit = {}) => decide("approve", edit),
        reject: (reason) => decide("reject", reason),
        editing: (edited) => {
          desk.edited = edited;
        },
      }),
    );
    if (focus) part("draft").querySelector("h2").focus();
  } catch (error) {
    part("draft").replaceChildren(element("a", { class: "back", href: "#/" }, "← All waiting drafts"));
    explain(error);
  }
}

async function decide(verdict, decision) {
  if (desk.sending || desk.draft === null) return;
  const { run, title, version, text_hash } = desk.draft;
  desk.sending = true;
  lock(true);
  alarm();
  notice();
  try {
    const answer = await desk.api[verdict](run, { version, text_hash, ...decision });
    desk.edited = false;
    await loadList();
    await showDraft({ focus: true });
    const next = desk.list.drafts.find((draft) => draft.run !== answer.run.run);
    notice(
      element("p", {}, element("strong", { dir: "auto" }, title), ` ${decisionOf(answer.run)}`),
      next === undefined ? null : element("a", { href: address(next) }, "Next waiting draft"),
    );
    window.scrollTo(0, 0);
  } catch (error) {
    if (error.status === 409) {
      alarm(...conflictView(error.message, error.answer.run, () => reload()));
      await loadList();
    } else {
      explain(error);
    }
  } finally {
    desk.sending = false;
    lock(false);
  }
}

function lock(locked) {
  for (const button of part("draft").querySelectorAll(".decide button")) button.disabled = locked;
}

async function reload() {
  if (!mayLeave()) return;
  alarm();
  await loadList();
  await showDraft({ focus: true });
}

function mayLeave() {
  return !desk.edited || window.confirm("Your edit is not stored anywhere. Leave it?");
}

function follow() {
  if (location.hash === desk.shownHash) return;
  if (!mayLeave()) {
    history.replaceState(null, "", desk.shownHash || here);
    return;
  }
  alarm();
  notice();
  showDraft({ focus: true });
}

async function open() {
  part("skip").addEventListener("click", (event) => {
    event.preventDefault();
    part("draft").focus();
  });
  const config = await (await fetch(new URL("config", here), { cache: "no-store" })).json();
  desk.session = config.login === "cognito" ? await cognitoSession(config, here) : localSession();
  desk.api = deskApi(here, desk.session);
  if (desk.session.remote && desk.session.bearer() === null) {
    askToSignIn();
    return;
  }
  window.addEventListener("hashchange", follow);
  window.addEventListener("beforeunload", (event) => {
    if (desk.edited) event.preventDefault();
  });
  window.setInterval(() => {
    const onOnePage = desk.list.drafts.length <= DRAFTS_ON_A_PAGE;
    if (document.visibilityState === "visible" && !desk.sending && onOnePage) loadList();
  }, REFRESH_MILLISECONDS);
  await loadList();
  await showDraft({ focus: false });
}

function askToSignIn() {
  part("draft").replaceChildren(
    element(
      "div",
      { class: "sign-in" },
      element("p", {}, "Drafts wait here for a person’s decision."),
      element("button", { type: "button", class: "yes", onclick: () => desk.session.begin() }, "Sign in"),
    ),
  );
}

open().catch((error) => alarm(element("p", {}, error.message), element("a", { href: here }, "Try again")));
