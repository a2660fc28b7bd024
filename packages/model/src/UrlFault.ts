import { isUpTo } from "./Characters.ts"

/**
 * Why the text is not an absolute http or https URL of at most `longest` characters without fragment and credentials; null when
 * it is one. `instead` says where credentials belong. The URL's target is checked on connecting.
 */
export const urlFault = (text: string, longest: number, instead = ""): string | null => {
  const url = URL.parse(text)
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || url === null) return "must be an absolute http or https URL"
  if (!isUpTo(text, longest)) return `must be at most ${longest} characters`
  if (text.includes("#")) return "must not have a fragment"
  if (/^https?:\/\/[^/?]*@/i.test(text)) return `must not contain a user name or password${instead}`
  return null
}
