/** Images that a person pastes or drops, encoded for a prompt. */
import type { Picture } from "../../api/types.ts";
import { sizeText } from "../../lib/duration.ts";

const KINDS = /^image\/(png|jpeg|gif|webp)$/;
/** The daemon's limit, before base64. */
const LARGEST = 6_000_000;

export function imageFiles(data: DataTransfer | null): File[] {
  return [...(data?.files ?? [])].filter(({ type }) => type.startsWith("image/"));
}

export async function encodeImage(file: File): Promise<Picture> {
  if (!KINDS.test(file.type)) throw new Error(`A picture of type ${file.type} cannot be sent; PNG, JPEG, GIF and WebP can.`);
  if (file.size > LARGEST) throw new Error(`That picture has ${sizeText(file.size)}; up to ${sizeText(LARGEST)} can be sent.`);
  return { mime: file.type, data: (await dataUrl(file)).split(",", 2)[1] ?? "" };
}

/** A data URL, which the content security policy allows. */
export function dataUrl(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error("The picture could not be read."));
    reader.readAsDataURL(blob);
  });
}
