// Sign-in with Cognito: the authorization code flow with PKCE (RFC 7636). The access token is held in memory alone,
// so it ends with the page. What must outlive the trip to the login page lies in sessionStorage until it is back.

const TRIP = "galley-sign-in";

export function localSession() {
  return {
    remote: false,
    bearer: () => null,
    forget() {},
    async begin() {},
  };
}

export async function cognitoSession(config, here) {
  const token = await arrive(config, here);
  let bearer = token;
  return {
    remote: true,
    bearer: () => bearer,
    forget() {
      bearer = null;
    },
    begin: () => depart(config, here),
  };
}

async function depart(config, here) {
  const trip = { state: random(), verifier: random(), back: location.hash };
  sessionStorage.setItem(TRIP, JSON.stringify(trip));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(trip.verifier));
  const address = new URL("/oauth2/authorize", config.domain);
  // Without a scope Cognito grants all that the client has, so that the template alone says which.
  address.search = new URLSearchParams({
    response_type: "code",
    client_id: config.client_id,
    redirect_uri: here,
    state: trip.state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  });
  location.assign(address);
}

// Returns the access token when the browser has just come back from the login page, and null when it has not.
async function arrive(config, here) {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("code") && !answer.has("error")) return null;
  const trip = JSON.parse(sessionStorage.getItem(TRIP) ?? "null");
  sessionStorage.removeItem(TRIP);
  history.replaceState(null, "", here + (trip?.back ?? ""));
  if (answer.has("error")) throw new Error(`Sign-in failed: ${answer.get("error_description") ?? answer.get("error")}`);
  if (trip === null || trip.state !== answer.get("state")) {
    throw new Error("Sign-in failed: the answer belongs to another attempt. Sign in again.");
  }
  const response = await fetch(new URL("/oauth2/token", config.domain), {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "authorization_code",
      client_id: config.client_id,
      code: answer.get("code"),
      redirect_uri: here,
      code_verifier: trip.verifier,
    }),
  });
  if (!response.ok) throw new Error(`Sign-in failed: the login service answered ${response.status}. Sign in again.`);
  return (await response.json()).access_token;
}

function random() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
