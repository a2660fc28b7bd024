import { isMembers } from "../../../json.ts"

/** The most paths that are offered, and how deep they go: a sample may be large. */
export const maxPaths = 200
const deepest = 6

/** The paths of the values in a sample. Members whose names templates cannot spell are left out. */
export const pathsIn = (value: unknown, path: string, depth = 0): ReadonlyArray<string> =>
  isMembers(value) && depth < deepest
    ? [
        path,
        ...Object.entries(value)
          .filter(([name]) => /^[\w-]{1,80}$/.test(name))
          .slice(0, maxPaths)
          .flatMap(([name, member]) => pathsIn(member, `${path}.${name}`, depth + 1))
      ]
    : [path]
