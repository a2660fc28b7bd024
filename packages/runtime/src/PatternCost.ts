/** Number of ranges for a Unicode class, which has hundreds. */
const unicodeClass = 64
/** Case-insensitive characters are looked up one by one, up to the last character that has letter case. */
const lastCased = 0x1e943
const casesEach = 25

const ignoresCase = /\(\?[a-z]*i/i
const counted = /\{(\d+)(?:,(\d*))?\}/y
const groupHead = /\?(?:[a-z-]*[:)]|P?<[^>]*>)/iy
const rangeEnd = /-(?:\\x\{([0-9a-f]+)\}|\\x([0-9a-f]{2})|\\([0-7]{1,3})|([^]))/giu

/**
 * Estimates the cost of compiling an RE2 pattern, in microseconds, from its text; rather too much than too little. It counts one for each
 * character, multiplied by the repetitions around it, and more for classes with many ranges. RE2 has no such limit itself: a few hundred
 * characters can block the event loop for half a second. `isCaseless`: the case-insensitive option is set outside of the pattern.
 */
export const patternCost = (pattern: string, isCaseless = false): number => {
  const open: Array<number> = []
  /** Cost of the open group, and of its last element. */
  let sum = 0
  let last = 0
  let cost = 0
  const add = (atom: number): void => {
    last = atom
    sum += atom
  }
  for (let at = 0; at < pattern.length; at++) {
    const c = pattern[at]!
    if (c === "\\" && pattern[at + 1] === "Q") {
      // Quoted text (`\Q…\E`) is literal.
      const end = pattern.indexOf("\\E", at + 2)
      const quoted = (end < 0 ? pattern.length : end) - at - 2
      if (quoted > 0) {
        sum += quoted
        last = 1
      }
      at += quoted + 3
    } else if (c === "\\") {
      if (/[pP]/.test(pattern[++at] ?? "")) cost += unicodeClass
      add(1)
    } else if (c === "[") {
      const end = endOfClass(pattern, at)
      cost += end - at + unicodeClass * (pattern.slice(at, end).match(/\\[pP]/g)?.length ?? 0)
      at = end
      add(1)
    } else if (c === "(") {
      open.push(sum)
      sum = 0
      groupHead.lastIndex = at + 1
      const head = groupHead.exec(pattern)?.[0] ?? ""
      at += head.length
      // `(?i)` sets flags and opens no group.
      if (head.endsWith(")")) sum = open.pop()!
    } else if (c === ")") {
      const inner = sum + 1
      sum = open.pop() ?? 0
      add(inner)
    } else if (c === "{") {
      counted.lastIndex = at
      const found = counted.exec(pattern)
      if (found === null) add(1)
      else {
        const times = Math.max(Number(found[1]), Number(found[2] ?? 0), 1)
        sum += last * (times - 1)
        last *= times
        at += found[0].length - 1
      }
    } else add(1)
  }
  cost += open.reduce((all, before) => all + before, sum)
  if (isCaseless || ignoresCase.test(pattern)) {
    for (const [, braced, hex, octal, literal] of pattern.matchAll(rangeEnd)) {
      const to = braced ?? hex
      const end =
        to !== undefined
          ? Number.parseInt(to, 16)
          : octal !== undefined
            ? Number.parseInt(octal, 8)
            : literal!.codePointAt(0)!
      cost += Math.min(end, lastCased) / casesEach
    }
  }
  return cost
}

/** The index at which the character class that begins at `from` ends. */
const endOfClass = (pattern: string, from: number): number => {
  // A bracket in the first position is a member of the class.
  let at = from + (pattern[from + 1] === "^" ? 2 : 1)
  if (pattern[at] === "]") at++
  for (; at < pattern.length; at++) {
    const c = pattern[at]!
    if (c === "\\") at++
    else if (c === "[" && pattern[at + 1] === ":") {
      const end = pattern.indexOf(":]", at + 2)
      if (end >= 0) at = end + 1
    } else if (c === "]") return at
  }
  return pattern.length
}
