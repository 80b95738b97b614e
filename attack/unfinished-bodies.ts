import { type Attack, crowd, post, strayBearer } from './attack.ts'

const connections = 1_500
const mebibyte = 1_048_576
const large = Buffer.alloc(mebibyte - 1, ' ')
const small = Buffer.alloc(65_535, ' ')

export const unfinishedBodies: Attack = {
  name: `${connections} connections send a body except its last byte: 1 MiB with or without an unknown bearer, or 64 KiB`,
  run: async (target, over) => {
    let count = 0
    const refused = await crowd(target, connections, over, (socket) => {
      const kind = count++ % 3
      socket.write(kind === 0 ? post(65_536) : kind === 1 ? post(mebibyte) : post(mebibyte, strayBearer()))
      socket.write(kind === 0 ? small : large)
      // Reads the refusal; otherwise the connection would not end.
      socket.resume()
    })
    return `${count} bodies begun, ${refused} connections ended`
  },
}
