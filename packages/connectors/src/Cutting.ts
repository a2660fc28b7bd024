/*
 * Shortens texts to a target's limit: cut between characters, with an ellipsis. Targets count in different units, and refuse the whole
 * call if a limit is exceeded.
 */

/** `longest` in UTF-16 units, as JavaScript and Java count. Also used if a target's unit is unknown, because no other unit gives a larger number. */
export const shortened = (text: string, longest: number): string => {
  if (text.length <= longest) return text
  const end = longest - 1
  const isPair = /[\ud800-\udbff]/.test(text[end - 1] ?? "")
  return `${text.slice(0, isPair ? end - 1 : end)}…`
}

/** The length in code points. */
export const pointsOf = (text: string): number => {
  let points = text.length
  for (let at = 0; at < text.length - 1; at++) {
    const [unit, next] = [text.charCodeAt(at), text.charCodeAt(at + 1)]
    if (unit >= 0xd800 && unit < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
      points--
      at++
    }
  }
  return points
}

/** `longest` in code points, as Discord, Slack and Telegram count: an emoji is one character to them. */
export const shortenedPoints = (text: string, longest: number): string => {
  if (text.length <= longest || pointsOf(text) <= longest) return text
  if (longest < 1) return ""
  let end = 0
  for (let left = longest - 1; left > 0; left--) end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
  return `${text.slice(0, end)}…`
}
