import { expect, it } from "vitest"
import { looker } from "../src/Looker.ts"

const watching = () => {
  const told: Array<string> = []
  const look = looker<{ readonly id: string; readonly mine: boolean }>({
    isWanted: ({ mine }) => mine,
    tell: ({ id }) => void told.push(id),
    skipped: () => void told.push("more")
  })
  return { told, look }
}

const list = (count: number, isMine: (index: number) => boolean, first = 0) => {
  let read = 0
  return {
    read: () => read,
    async *[Symbol.asyncIterator]() {
      for (; read < count; read++) yield { id: `${first + count - read}`, mine: isMine(read) }
    }
  }
}

it("Record watcher reports only new records, and each of them once", async () => {
  const { look, told } = watching()
  await look(list(3, () => true))
  await look(list(5, () => true))
  await look(list(5, () => true))
  expect(told).toEqual(["5", "4"])
})

it("Record watcher finds matching records among many records that do not match", async () => {
  const { look, told } = watching()
  await look(list(0, () => true))
  await look(list(4_000, (index) => index % 2_000 === 1_999))
  expect(told).toEqual(["2001", "1"])
})

it("Record watcher reads a limited number of records and then reports that there are more", async () => {
  const { look, told } = watching()
  await look(list(0, () => true))
  const mine = list(100_000, () => true)
  await look(mine)
  expect([told.length, told.at(-1)]).toEqual([1_001, "more"])
  const others = list(100_000, () => false, 1_000_000)
  await look(others)
  expect(told.slice(1_001)).toEqual(["more"])
  expect(mine.read() + others.read()).toBeLessThan(10_000)
})
