/** Characters of a server's message that are shown. */
const longestWords = 300

/** A server's message on one line, with the secret masked; an untrusted server may repeat what it received. */
export const shownWords = (said: string, secret: string): string => {
  const hidden = secret === "" ? said : said.replaceAll(secret, "****")
  return hidden
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .trim()
    .slice(0, longestWords)
    .toWellFormed()
}

/** The message of a failure: what it means, the server's own code, and its words. */
export const refusalText = (what: string, code: string, said: string, secret: string): string => {
  const words = shownWords(said, secret)
  return `${what} (${code})${words === "" ? "" : `: ${words}`}`
}
