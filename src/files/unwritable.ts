import { StartError } from '../errors.ts'

/** For the `catch` of code that creates and writes an output: rejects with what is wrong with it. */
export const unwritable =
  (what: string, reason = 'cannot_write') =>
  (error: NodeJS.ErrnoException): never => {
    if (error instanceof StartError) throw error
    const { code, message } = error
    const why = code === 'EEXIST' ? 'it already exists. Choose another name' : message
    throw new StartError(reason, `${what} cannot be written: ${why}.`, 1)
  }

/** The same for the file of a token. `remedy` is a sentence. */
export const tokenUnwritable =
  (path: string, remedy: string) =>
  (error: NodeJS.ErrnoException): never => {
    const what =
      error instanceof StartError ? error.message : `${path} cannot be written (${error.code}). ${remedy}`
    throw new StartError('token_file_unwritable', what, 1)
  }
