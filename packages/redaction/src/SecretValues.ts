import { runToEnd } from "@tidegate/runtime/Resumable"

/** The mask of a secret in shared requests. */
export const redacted = "[redacted]"

/** The mask in workflow runs, and in tests of filters. */
export const redactedInPreviews = "[REDACTED]"

type Look = readonly [look: RegExp, before?: string, after?: string]

/** A value after the name of a scheme. The name may be an ordinary word, so this form alone does not prove a secret. */
const schemed: Look = [/\b(bearer|basic)((?:\s|%20|\+){1,20})[\w.~+/=:%-]{6,}/gi, "$1$2"]
/** Credentials before the host of a URL, possibly a user name alone. */
const userInfo: Look = [/\b([a-z][a-z0-9+.-]{1,30}:\/\/)[^\s/?#"'<>]*@/gi, "$1", "@"]

/** Forms by which secrets are recognised, whatever their names are. Each pattern runs in linear time. */
const looks: ReadonlyArray<Look> = [
  // Also if the text was cut before the end mark.
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

/** A JSON web token, or the beginning of one. Without a dot it may be any JSON object in base64; that is decided elsewhere. */
const webToken = /\beyJ[\w-]{6,}(?:\.[\w-]*){0,4}/g

export const longText = 4_096

/** Matches any text that has one of these forms. Most texts have none, and are searched only once. */
export const anyLook =
  /-----BEGIN|bearer|basic|:\/\/|slack\.com\/|discord|telegram|\d{8}:|_[\w+/=-]{8}|-[\w-]{10}|AKIA|ASIA|AIza|ya29\.|SG\.|eyJ/i

/** Masks secrets in a text by their form. In a long text it yields after each pattern. */
export function* secretLooksRemoved(text: string, mask: string): Generator<void, string, void> {
  if (text.length <= longText && !anyLook.test(text)) return text
  let rest = text.replace(webToken, (token) => (token.includes(".") ? mask : token))
  for (const [look, before = "", after = ""] of looks) {
    if (rest.length > longText) yield
    rest = rest.replace(look, before + mask + after)
  }
  return rest
}

/** The same without pauses. */
export const withoutSecretLooks = (text: string): string => runToEnd(secretLooksRemoved(text, redacted))

const plainLooks = looks.filter((look) => look !== schemed && look !== userInfo).map(([look]) => look)

/** Whether a text is almost certainly a secret: writes with such a text may be refused. */
export const isPlainlySecret = (text: string): boolean =>
  anyLook.test(text) &&
  (/\beyJ[\w-]{6,}\.[\w-]+/.test(text) ||
    /:\/\/[^\s/?#"'<>:@]*:[^\s/?#"'<>@]{4,}@/.test(text) ||
    plainLooks.some((look) => text.search(look) >= 0))
