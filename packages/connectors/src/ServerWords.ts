/** Characters of a server's message that are shown. */
const longestWords = 300

/** A server's message on one line, with secrets masked, because an untrusted server may repeat what it received. */
export const shownWords = (said: string, secrets: ReadonlyArray<string>): string => {
  const hidden = secrets.reduce((text, secret) => (secret === "" ? text : text.replaceAll(secret, "****")), said)
  return hidden
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .trim()
    .slice(0, longestWords)
    .toWellFormed()
}

/** The message of a failure: what it means, the server's own code, and its words. */
export const refusalText = (what: string, code: string, said: string, secrets: ReadonlyArray<string>): string => {
  const words = shownWords(said, secrets)
  return `${what} (${code})${words === "" ? "" : `: ${words}`}`
}
