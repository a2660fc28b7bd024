import type { Resumable } from "@tidegate/runtime/Resumable"
import { commonOf, inTurns, type Item, type Items, type Mark, type Marks } from "./MarkdownItems.ts"

/**
 * Marks that CommonMark reads as they are meant. It takes asterisks and underscores for marks only where no white space is on their inner side, and where
 * no punctuation is there while a letter is on the outer side. White space stands outside of marks already; where it has to, punctuation is moved out of
 * them, as if the HTML were written so. Every item is looked at a bounded number of times.
 */

/** Neither white space nor punctuation. Parsers differ about symbols, so that most of them count as both letters and punctuation. */
const isLetter = (character: string): boolean => /^(?:_|[^\s\p{P}$+<=>^`|~])$/u.test(character)
const isPunctuation = (character: string): boolean => /^[\p{P}\p{S}]$/u.test(character)

const firstOf = (text: string): string => String.fromCodePoint(text.codePointAt(0)!)
const lastOf = (text: string): string => /[\ud800-\udbff][\udc00-\udfff]$|.$/s.exec(text.slice(-2))![0]

/** Code and what is made begin and end with punctuation. */
const firstIn = ({ kind, value }: Item): string => (kind === "text" ? firstOf(value) : "`")
const lastIn = ({ kind, value }: Item): string => (kind === "text" ? lastOf(value) : "`")

/** Where the punctuation ends that a text begins with. */
const leading = (text: string): number => /^[\p{P}\p{S}]*/u.exec(text)![0].length

/** Where the punctuation begins that a text ends with. A pattern would look at all punctuation in the text. */
const trailing = (text: string): number => {
  let at = text.length
  for (;;) {
    const last = at === 0 ? "" : lastOf(text.slice(0, at))
    if (!isPunctuation(last)) return at
    at -= last.length
  }
}

/** Where the link is among the marks from a place on; behind all of them if there is none. */
const linkFrom = (marks: Marks, from: number): number => {
  const at = marks.findIndex(({ kind }, place) => place >= from && kind === "link")
  return at < 0 ? marks.length : at
}

/** Items, with marks that CommonMark reads. */
export class Arrangement {
  readonly items: Array<Item> = []
  /** Emphasis that is written with asterisks: an underscore beside a letter is a letter. */
  readonly starred = new Set<Mark>()
  /** Marks that go on with the one directly before them. */
  readonly #same = new Map<Mark, Mark>()
  /** Links that are written outside of marks around them, and the number of marks that stay around them. */
  readonly #outer = new Map<Mark, number>()

  add(next: Item): void {
    next.marks = this.#known(next.marks)
    const last = this.items.at(-1)
    if (last === undefined || next.before !== "") this.items.push(next)
    else this.#join(last, next)
  }

  #known(marks: Marks): Marks {
    const known = this.#same.size === 0 ? marks : marks.map((mark) => this.#same.get(mark) ?? mark)
    const from = this.#outer.size === 0 ? known.length : linkFrom(known, 0)
    const link = known[from]
    const to = link === undefined ? undefined : this.#outer.get(link)
    if (link === undefined || to === undefined || to >= from) return known
    return [...known.slice(0, to), link, ...known.slice(to, from), ...known.slice(from + 1)]
  }

  /** Adds an item that stands directly behind the last one. */
  #join(last: Item, next: Item): void {
    let common = commonOf(last.marks, next.marks)
    const [before, after] = [lastIn(last), firstIn(next)]
    for (; ; common++) {
      const [closed, opened] = [last.marks[common], next.marks[common]]
      if (closed === undefined || opened?.kind !== closed.kind || closed.kind === "link") break
      const isAlone = last.marks.length === common + 1 && next.marks.length === common + 1
      if (closed.kind === "em" && isAlone && !this.starred.has(closed)) {
        // Underscores end the one, an asterisk begins the other.
        this.starred.add(opened)
        break
      }
      // A mark that ends where another one of its kind begins would be none.
      this.#same.set(opened, closed)
      next.marks = this.#known(next.marks)
    }
    const closedLink = linkFrom(last.marks, common)
    const openedLink = linkFrom(next.marks, common)
    const isLinkClosed = closedLink < last.marks.length
    const isLinkOpened = openedLink < next.marks.length
    const isEnd = last.marks.length > common
    const isBeginning = next.marks.length > common
    // What ends and what begins here are punctuation to each other.
    if (isEnd && !isBeginning && isLetter(after)) this.#end(last, common, isLinkClosed ? closedLink : null)
    if (isBeginning && !isEnd && isLetter(before)) this.#begin(next, common, isLinkOpened ? openedLink : null)
    this.items.push(next)
  }

  /** Marks end behind the last item and before a letter, so a letter has to stand before them. `link`: the place of a link that ends with them. */
  #end(last: Item, common: number, link: number | null): void {
    const outer = last.marks.slice(0, common)
    const ending = last.marks.slice(common, link ?? undefined)
    if (ending.length === 0) return
    if (link !== null) {
      const moved = last.marks[link]!
      this.#outer.set(moved, common)
      for (let at = this.items.length - 1; this.items[at]?.marks[link] === moved; at--) {
        this.items[at]!.marks = this.#known(this.items[at]!.marks)
      }
      return
    }
    const end = last.kind === "text" ? trailing(last.value) : 0
    if (end === 0) last.marks = outer
    else if (end === last.value.length) this.#star(ending)
    else {
      const kept = last.value.slice(0, end).trimEnd()
      this.items.push({
        ...last,
        value: last.value.slice(end),
        before: last.value.slice(kept.length, end),
        marks: outer
      })
      last.value = kept
    }
  }

  /** Marks begin before an item and behind a letter, so a letter has to stand behind them. `link`: the place of a link that begins with them. */
  #begin(next: Item, common: number, link: number | null): void {
    const outer = next.marks.slice(0, common)
    const beginning = next.marks.slice(common, link ?? undefined)
    if (beginning.length === 0) return
    if (link !== null) {
      this.#outer.set(next.marks[link]!, common)
      next.marks = this.#known(next.marks)
      return
    }
    const end = next.kind === "text" ? leading(next.value) : next.value.length
    if (end === next.value.length) next.marks = outer
    else if (end === 0) this.#star(beginning)
    else {
      const rest = next.value.slice(end).trimStart()
      const from = next.value.length - rest.length
      this.items.push({ ...next, value: next.value.slice(0, end), marks: outer })
      next.before = next.value.slice(end, from)
      next.value = rest
    }
  }

  #star(marks: Marks): void {
    for (const mark of marks) if (mark.kind === "em") this.starred.add(mark)
  }
}

/** Asterisks that stand beside each other, as CommonMark sees them: how many, and what they end and begin. */
interface Run {
  readonly before: string
  readonly ending: Array<Mark>
  readonly beginning: Array<Mark>
}

/** A run that begins marks which have no end yet. */
interface Opener {
  readonly length: number
  readonly isBoth: boolean
  left: number
  readonly marks: Array<Mark>
}

const asterisks = ({ kind }: Mark): number => (kind === "strong" ? 2 : 1)
const lengthOf = (marks: ReadonlyArray<Mark>): number => marks.reduce((sum, mark) => sum + asterisks(mark), 0)

/** Pairs asterisks by the rules of CommonMark (9 and 10 of "Emphasis"), and compares each pair with what is meant. */
class AsteriskPairs {
  readonly #starred: ReadonlySet<Mark>
  #openers: Array<Opener> = []
  /** Those outside of the link that is open: what is in it is paired by itself. */
  #outside: Array<Opener> = []
  #before = " "
  #run: Run | null = null
  isMeant = true
  /** Emphasis that has a run together with strong text. */
  readonly shared = new Set<Mark>()

  constructor(starred: ReadonlySet<Mark>) {
    this.#starred = starred
  }

  /** The first and last characters of what is not a mark. */
  text(first: string, last: string): void {
    if (this.#run !== null) this.#pair(this.#run, first)
    this.#run = null
    this.#before = last
  }

  mark(mark: Mark, isEnd: boolean): void {
    if (mark.kind === "link") {
      this.text("[", "[")
      if (isEnd) this.#openers = this.#outside
      else {
        this.#outside = this.#openers
        this.#openers = []
      }
    } else if (mark.kind === "em" && !this.#starred.has(mark)) this.text("_", "_")
    else {
      this.#run ??= { before: this.#before, ending: [], beginning: [] }
      this.#run[isEnd ? "ending" : "beginning"].push(mark)
    }
  }

  #pair({ before, beginning, ending }: Run, after: string): void {
    if (!this.isMeant) return
    const all = [...ending, ...beginning]
    const length = lengthOf(all)
    if (all.some(({ kind }) => kind === "strong")) for (const mark of all) if (mark.kind === "em") this.shared.add(mark)
    const [isSpaceBefore, isSpaceAfter] = [/\s/.test(before), /\s/.test(after)]
    const [isOpening, isClosing] = [
      !isSpaceAfter && (!isPunctuation(after) || isSpaceBefore || isPunctuation(before)),
      !isSpaceBefore && (!isPunctuation(before) || isSpaceAfter || isPunctuation(after))
    ]
    const isBoth = isOpening && isClosing
    const left = isClosing ? this.#close(ending, length, isBoth) : length
    if (ending.length > 0 || (beginning.length > 0 && !isOpening)) this.isMeant = false
    if (left > 0) this.#openers.push({ length, isBoth, left, marks: [...beginning] })
  }

  /** Ends marks with a run, and takes them out of `ending`. Answers how many of its asterisks are left. */
  #close(ending: Array<Mark>, length: number, isBoth: boolean): number {
    let left = length
    while (left > 0) {
      const opener = this.#openers.findLast(
        (one) =>
          !(one.isBoth || isBoth) || (one.length + length) % 3 !== 0 || (one.length % 3 === 0 && length % 3 === 0)
      )
      if (opener === undefined) break
      const size = Math.min(opener.left, left, 2)
      const meant = ending.find((mark) => asterisks(mark) === size)
      if (meant === undefined || opener !== this.#openers.at(-1) || !opener.marks.includes(meant)) {
        this.isMeant = false
        break
      }
      ending.splice(ending.indexOf(meant), 1)
      opener.marks.splice(opener.marks.indexOf(meant), 1)
      opener.left -= size
      left -= size
      if (opener.left === 0) this.#openers.pop()
    }
    return left
  }
}

/** Emphasis that CommonMark would not read as it is meant. */
function* misread({ items, starred }: Arrangement, spend: (micros: number) => void): Resumable<ReadonlySet<Mark>> {
  // Without it, all runs are pairs, which never add up to three.
  if (starred.size === 0) return starred
  const pairs = new AsteriskPairs(starred)
  let open: Marks = []
  const marks = (some: Marks, isEnd: boolean): void => {
    for (const mark of some) pairs.mark(mark, isEnd)
  }
  yield* inTurns(items, spend, (item) => {
    const common = commonOf(open, item.marks)
    marks(open.slice(common).toReversed(), true)
    if (item.before !== "") pairs.text(" ", " ")
    marks(item.marks.slice(common), false)
    pairs.text(firstIn(item), lastIn(item))
    open = item.marks
  })
  marks(open.toReversed(), true)
  pairs.text(" ", " ")
  if (pairs.isMeant) return new Set()
  return pairs.shared.size > 0 ? pairs.shared : starred
}

/** `isKept`: of marks that are not left out. */
function* arrangedOf(
  read: Items,
  spend: (micros: number) => void,
  isKept: (mark: Mark) => boolean
): Resumable<Arrangement> {
  const arrangement = new Arrangement()
  yield* inTurns(read, spend, (item) => arrangement.add({ ...item, marks: item.marks.filter(isKept) }))
  return arrangement
}

export function* arranged(read: Items, spend: (micros: number) => void): Resumable<Arrangement> {
  const whole = yield* arrangedOf(read, spend, () => true)
  const lost = yield* misread(whole, spend)
  if (lost.size === 0) return whole
  // Fails to the text, because marks that are shown are worse than emphasis that is not.
  const most = yield* arrangedOf(read, spend, (mark) => !lost.has(mark))
  const more = yield* misread(most, spend)
  return more.size === 0 ? most : yield* arrangedOf(read, spend, ({ kind }) => kind !== "em")
}
