import { useState } from "react"

/** Values that this browser keeps for the reader. Only values in the form that this page writes are used; anything else is dropped. */
const read = <Value>(key: string, check: (value: unknown) => value is Value, other: Value): Value => {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? "null")
    return check(value) ? value : other
  } catch {
    return other
  }
}

/** A value that is kept in this browser, and the function that changes it. */
export const useKept = <Value>(
  key: string,
  check: (value: unknown) => value is Value,
  other: Value
): readonly [Value, (value: Value) => void] => {
  const [kept, setKept] = useState(() => ({ key, value: read(key, check, other) }))
  const value = kept.key === key ? kept.value : read(key, check, other)
  return [
    value,
    (next) => {
      setKept({ key, value: next })
      try {
        localStorage.setItem(key, JSON.stringify(next))
      } catch {
        // A browser that keeps nothing: the value lasts until the page is left.
      }
    }
  ]
}

export const isTexts = (value: unknown): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.every((one) => typeof one === "string")
