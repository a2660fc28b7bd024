import { runToEnd } from "@tidegate/runtime/Resumable"

/** What is read in the place of a secret, in what is shared. */
export const redacted = "[redacted]"

/** The same in what is shown of runs of workflows, and of what filters are tried on. */
export const redactedInPreviews = "[REDACTED]"

type Look = readonly [look: RegExp, before?: string, after?: string]

/** Behind the name of a scheme, which may be a word like any other. */
const schemed: Look = [/\b(bearer|basic)((?:\s|%20|\+){1,20})[\w.~+/=:%-]{6,}/gi, "$1$2"]
/** Before the host of a URL, where there may be a name alone. */
const userInfo: Look = [/\b([a-z][a-z0-9+.-]{1,30}:\/\/)[^\s/?#"'<>]*@/gi, "$1", "@"]

/** Secrets that their look gives away, whatever they are called. Each is found in a time that grows with the text alone. */
const looks: ReadonlyArray<Look> = [
  // Also cut off before its end.
  [/-----BEGIN [A-Z0-9 ]{0,40}KEY[A-Z0-9 ]{0,40}-----[^]*?(?:-----END [A-Z0-9 ]{0,80}-----|$)/g],
  schemed,
  userInfo,
  [/\b(hooks\.slack\.com\/(?:services|workflows|triggers)\/)[^\s"'<>]+/gi, "$1"],
  [/\b(discord(?:app)?\.com\/api\/(?:v\d+\/)?webhooks\/)[^\s"'<>]+/gi, "$1"],
  [/\b(api\.telegram\.org\/bot)[^\s"'<>/]+/gi, "$1"],
  [/\b\d{8,10}:[\w-]{35}\b/g],
  [
    /\b(?:[spr]k_(?:live|test)|whsec|gh[pousr]|github_pat|npm|gw[kps]|rsh|pbn|ses|shp(?:at|ca|pa|ss)|dop_v1|hf)_[\w+/=-]{8,}/g
  ],
  [/\b(?:glpat|xox[a-z]|xapp|sk|pypi)-[\w-]{10,}/g],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g],
  [/\bAIza[\w-]{30,}/g],
  [/\bya29\.[\w-]{10,}/g],
  [/\bSG\.[\w-]{10,}\.[\w-]{10,}/g]
]

/** A JSON web token, or half of one. Without a dot it may be anything that begins like an object; that is not told here. */
const webToken = /\beyJ[\w-]{6,}(?:\.[\w-]*){0,4}/g

export const longText = 4_096

/** What a text has that has one of the looks: most have none of it, and are looked through once. */
export const anyLook =
  /-----BEGIN|bearer|basic|:\/\/|slack\.com\/|discord|telegram|\d{8}:|_[\w+/=-]{8}|-[\w-]{10}|AKIA|ASIA|AIza|ya29\.|SG\.|eyJ/i

/** A text without what looks like a secret. Of a long one, each look is a part of the work. */
export function* secretLooksRemoved(text: string, mask: string): Generator<void, string, void> {
  if (text.length <= longText && !anyLook.test(text)) return text
  let rest = text.replace(webToken, (token) => (token.includes(".") ? mask : token))
  for (const [look, before = "", after = ""] of looks) {
    if (rest.length > longText) yield
    rest = rest.replace(look, before + mask + after)
  }
  return rest
}

/** The same at once. */
export const withoutSecretLooks = (text: string): string => runToEnd(secretLooksRemoved(text, redacted))

const plainLooks = looks.filter((look) => look !== schemed && look !== userInfo).map(([look]) => look)

/** Whether a text has what can hardly be anything but a secret: what is written may be refused for it. */
export const isPlainlySecret = (text: string): boolean =>
  anyLook.test(text) &&
  (/\beyJ[\w-]{6,}\.[\w-]+/.test(text) ||
    /:\/\/[^\s/?#"'<>:@]*:[^\s/?#"'<>@]{4,}@/.test(text) ||
    plainLooks.some((look) => text.search(look) >= 0))
