import { readFileSync } from "node:fs"
import { afterAll, beforeAll, expect, it } from "vitest"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Gateway } from "../support/Gateway.ts"

/** What a process holds for a team that may edit is bounded in bytes. Each attack here ended a process of this heap. */
const heapMb = 512
const sources = 200

let gateway: Gateway
beforeAll(async () => {
  gateway = await Gateway.start({ NODE_OPTIONS: `--max-old-space-size=${heapMb}` })
})
afterAll(() => gateway.close())

const residentMb = (): number => {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, "utf8"))!
  return Number(kilobytes) / 1024
}

/** Copies of a source, each as large as it is. */
const copies = async (id: string): Promise<ReadonlyArray<string>> => {
  const ids = Array.from({ length: sources }, () => newId(prefixes.source, Date.now()))
  await gateway.sql(
    `insert into sources select (jsonb_populate_record(s, jsonb_build_object('id', new, 'name', new, 'slug', null))).*
      from sources s, unnest($2::text[]) new where s.id = $1`,
    [id, ids]
  )
  return ids
}

const post = async (id: string): Promise<number> => {
  const answer = await fetch(`${gateway.origin}/e/${id}`, {
    method: "POST",
    body: '{"a":1}',
    headers: { "content-type": "application/json" }
  })
  await answer.arrayBuffer()
  return answer.status
}

const rule = (body: string) => ({ match: { method: "PUT" }, response: { status: 200, content_type: "text", body } })

it.each([
  ["with large bodies", Array.from({ length: 50 }, (_, i) => rule(`${i}`.padEnd(65_000, "abcdefghij")))],
  ["full of placeholders", Array.from({ length: 50 }, (_, i) => rule(`${i}${"{{body.a}}".repeat(390)}`))]
])(
  "A process with a small heap survives 200 sources whose custom responses, %s, exceed its memory",
  async (_, rules) => {
    const { id } = await gateway.source({ custom_response: { rules } })
    const pid = gateway.pid
    const ids = await copies(id)
    // Side by side, too: what is read at once is bounded as what is kept is.
    const answers: Array<number> = []
    for (let i = 0; i < ids.length; i += 50) answers.push(...(await Promise.all(ids.slice(i, i + 50).map(post))))
    expect(new Set(answers)).toEqual(new Set([200]))
    expect(gateway.pid).toBe(pid)
    expect(residentMb()).toBeLessThan(heapMb + 256)
  }
)
