// Makes web/vendor anew from the packages that are installed in the folder given as the only argument.
// For each file: what was changed, the hash of the file as it is loaded, and the licence beside it.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync, readdirSync, rmSync, existsSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const installed = process.argv[2];
const vendor = new URL("../web/vendor/", import.meta.url).pathname;
const { packages } = JSON.parse(readFileSync(join(vendor, "packages.json"), "utf8"));

for (const name of readdirSync(vendor)) {
  if (name !== "packages.json") rmSync(join(vendor, name));
}

const manifest = [];
for (const { name, version, why, files } of packages) {
  const folder = join(installed, "node_modules", name);
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (about.version !== version) throw new Error(`${name} is ${about.version}, not ${version}`);
  const licence = ["LICENSE", "LICENSE.md", "license", "LICENCE"].find((file) => existsSync(join(folder, file)));
  if (!licence) throw new Error(`${name} has no licence file`);
  const licenceFile = `${name.replace("@", "").replace("/", "-")}.LICENSE.txt`;
  writeFileSync(join(vendor, licenceFile), readFileSync(join(folder, licence), "utf8").replace(/[ \t]+$/gm, "").trimEnd() + "\n");
  const made = files.map(({ from, to, replace = [] }) => {
    let text = readFileSync(join(folder, from), "utf8");
    // The maps are not shipped, and a browser's tools would ask for them.
    text = text.replace(/\n?\/\/# sourceMappingURL=\S+\s*$/, "\n");
    for (const [what, by] of replace) {
      if (!text.includes(what)) throw new Error(`${name}: ${from} has no ${what}`);
      text = text.replaceAll(what, by);
    }
    const bytes = Buffer.from(text);
    const packed = gzipSync(bytes, { level: 9 });
    packed[9] = 255; // The system that packed it: unknown, so that the file is the same everywhere.
    writeFileSync(join(vendor, `${to}.gz`), packed);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    return { file: to, from, changes: replace, sha256, bytes: bytes.length, packed: packed.length };
  });
  manifest.push({ name, version, licence: about.license, licence_file: licenceFile, why, files: made });
}
writeFileSync(join(vendor, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n");
for (const { name, version, licence, files } of manifest) {
  for (const { file, packed } of files) console.log(`${file}: ${name} ${version} (${licence}), ${packed} bytes`);
}
