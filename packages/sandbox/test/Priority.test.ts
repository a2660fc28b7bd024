import { expect, it } from "@effect/vitest"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync } from "node:fs"
import { getPriority } from "node:os"
import { makePriority } from "../src/Priority.ts"
import { mayRaisePriority } from "./processes.ts"

const started = async (): Promise<ChildProcess & { readonly pid: number }> => {
  const child = spawn(process.execPath, ["-e", "console.log(1); setInterval(() => {}, 1000)"])
  await once(child.stdout, "data")
  return child as ChildProcess & { readonly pid: number }
}
const ofThreads = (pid: number): ReadonlySet<number> =>
  new Set(readdirSync(`/proc/${pid}/task`).map((thread) => getPriority(Number(thread))))

it.runIf(mayRaisePriority())("A child process lowers and restores its priority with all of its threads", async () => {
  const child = await started()
  try {
    const own = getPriority()
    const priority = makePriority(child.pid, own + 3)
    expect(ofThreads(child.pid)).toEqual(new Set([own + 3]))
    priority.goFirst()
    expect(ofThreads(child.pid)).toEqual(new Set([own]))
    priority.giveWay()
    expect(ofThreads(child.pid)).toEqual(new Set([own + 3]))
    expect(priority.isStuck()).toBe(false)
  } finally {
    child.kill("SIGKILL")
  }
})

it.runIf(process.platform === "linux")("A child that never started does not change this process's priority", () => {
  const own = getPriority()
  const priority = makePriority(0, own + 3)
  priority.giveWay()
  expect(getPriority()).toBe(own)
})
