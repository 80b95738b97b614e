import { StartError } from '../errors.ts'

/** For the `catch` of code that creates and writes an output: rejects with what is wrong with it. */
export const unwritable =
  (what: string, reason = 'cannot_write') =>
  (error: NodeJS.ErrnoException): never => {
    if (error instanceof StartError) throw error
    const { code = '', message } = error
    const why =
      code === 'EEXIST' ? 'it already exists. Choose another name' : full.has(code) ? fullText : message
    throw new StartError(reason, `${what} cannot be written: ${why}.`, 1)
  }

/** The error codes of a full disk, and of one on which this user may store no more. */
const full = new Set(['ENOSPC', 'EDQUOT'])
const fullText = 'its disk is full. Free space there, or choose another place'

/** The same for the file of a token. `remedy` is a sentence. */
export const tokenUnwritable =
  (path: string, remedy: string) =>
  (error: NodeJS.ErrnoException): never => {
    const why = full.has(error.code ?? '') ? `: ${fullText}.` : ` (${error.code}). ${remedy}`
    const what = error instanceof StartError ? error.message : `${path} cannot be written${why}`
    throw new StartError('token_file_unwritable', what, 1)
  }
