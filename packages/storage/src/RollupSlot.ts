import { randomInt } from "node:crypto"

/**
 * The slot that this process's control calls count in: above those of the journals, which count in far more often and
 * must not wait. Two processes that draw the same one share rows and stay correct.
 */
export const controlSlot: number = 32_100 + randomInt(600)

/** The slot of counts that are of whole hours. Retention alone writes it. */
export const hourSlot = -1
