// Asks the desk's API. Every answer but a 2xx becomes a Refused that carries what the server said.

export class Refused extends Error {
  constructor(status, answer) {
    super(answer?.error?.message ?? answer?.message ?? `The desk answered ${status}.`);
    this.status = status;
    this.answer = answer;
  }
}

export function deskApi(here, session) {
  async function ask(method, path, body) {
    const headers = { accept: "application/json" };
    const bearer = session.bearer();
    if (bearer !== null) headers.authorization = `Bearer ${bearer}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    let response;
    try {
      response = await fetch(new URL(path, here), {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        cache: "no-store",
        redirect: "error",
      });
    } catch {
      throw new Refused(0, { message: "The desk cannot be reached. Is it running, and are you online?" });
    }
    const answer = await response.json().catch(() => null);
    if (!response.ok) throw new Refused(response.status, answer);
    return answer;
  }

  const draftPath = (draft) => `drafts/${encodeURIComponent(draft.drafter)}/${encodeURIComponent(draft.slot)}`;
  return {
    waiting: (after) => ask("GET", after === null ? "drafts" : `drafts?after=${encodeURIComponent(after)}`),
    read: (draft) => ask("GET", draftPath(draft)),
    approve: (draft, decision) => ask("POST", `${draftPath(draft)}/approve`, decision),
    reject: (draft, decision) => ask("POST", `${draftPath(draft)}/reject`, decision),
  };
}
