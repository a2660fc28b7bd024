/** How many characters (code points) a text has. */
export const lengthOf = (text: string): number => {
  let length = text.length
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit >= 0xd800 && unit < 0xdc00) {
      const next = text.charCodeAt(at + 1)
      if (next >= 0xdc00 && next < 0xe000) length--
    }
  }
  return length
}

/** Whether a text has more characters than that: shorter texts are not counted. */
export const isLonger = (text: string, most: number): boolean => text.length > most && lengthOf(text) > most
