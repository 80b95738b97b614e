import { StartError } from '../errors.ts'

/** Rejects with what is wrong with an output, for the `catch` of what creates and writes it. */
export const unwritable =
  (what: string, reason = 'cannot_write') =>
  ({ code, message }: NodeJS.ErrnoException): never => {
    const why = code === 'EEXIST' ? 'it exists already; choose another name' : message
    throw new StartError(reason, `${what} cannot be written: ${why}.`, 1)
  }
