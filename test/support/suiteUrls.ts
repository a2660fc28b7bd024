import { registerHooks } from "node:module"

/*
 * vitest loads suites and setup files by URLs that contain the time. Node keeps compiled code by its URL, so each run would leave the code of all
 * suites in the cache, and none would find it. With a count instead of the time, the next run finds it.
 */

const loaded = new Map<string, number>()

registerHooks({
  resolve: (specifier, context, nextResolve) => {
    const resolved = nextResolve(specifier, context)
    const [, file] = /^(.*\?vitest=)\d+$/.exec(resolved.url) ?? []
    if (file === undefined) return resolved
    const times = (loaded.get(file) ?? 0) + 1
    loaded.set(file, times)
    return { ...resolved, url: `${file}${times}` }
  }
})
