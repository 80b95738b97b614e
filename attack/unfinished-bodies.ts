import { type Attack, crowd, post, strayBearer } from './attack.ts'

const connections = 1_500
const mebibyte = 1_048_576
const most = Buffer.alloc(mebibyte - 1, ' ')
const small = Buffer.alloc(65_535, ' ')

export const unfinishedBodies: Attack = {
  name: `${connections} connections send a body but for its last byte: of 1 MiB, with a stray bearer or without, or of 64 KiB`,
  run: async (target, over) => {
    let count = 0
    const refused = await crowd(target, connections, over, (socket) => {
      const kind = count++ % 3
      socket.write(kind === 0 ? post(65_536) : kind === 1 ? post(mebibyte) : post(mebibyte, strayBearer()))
      socket.write(kind === 0 ? small : most)
      // Reads the refusal, as its connection would not end otherwise.
      socket.resume()
    })
    return `${count} bodies begun, ${refused} connections ended`
  },
}
