# CycloneDX 1.6 from what cargo knows ($metadata, $built, $lock), the table ($bundled) and the linker ($shared).
# The same inputs give the same bytes: no clock, no random serial number.

def lines: split("\n") | map(select(. != "") | split(" "));
def licence: if . == null then {} else { licenses: [{ expression: (gsub("/"; " OR ")) }] } end;
def note($name; $value): { name: "samestory:\($name)", value: $value };

($metadata[0]) as $all
| ($bundled[0]) as $table
| ($built | lines | map({ key: "\(.[0]) \(.[1])", value: true }) | from_entries) as $compiled
| ($lock | split("[[package]]") | map(
    select(test("\nchecksum = "))
    | { key: "\(capture("\nname = \"(?<a>[^\"]*)").a) \(capture("\nversion = \"(?<a>[^\"]*)").a)",
        value: capture("\nchecksum = \"(?<a>[^\"]*)").a }) | from_entries) as $checksums
| ($shared | lines) as $libraries
| ($all.packages | map(select($compiled["\(.name) \(.version)"])) | sort_by(.name, .version)) as $crates
| ($crates | map({ key: .id, value: "pkg:cargo/\(.name)@\(.version | gsub("\\+"; "%2B"))" }) | from_entries) as $refs

# Crates that link C, with their entries in the table.
| ($crates | map(select(.links)) | map(
    . as $crate
    | ($table[.name] // error("dev/sbom/bundled.json does not say what \(.name) links"))
    | select(.shared or .name)
    | if .shared then
        .shared as $shared
        | if ($libraries | any(.[0] == $shared)) then empty
          else error("\($crate.name) should link \($shared), but the program does not need it") end
      else
        (.seen as $seen | if ($crate.version | endswith($seen)) then . else
          error("\($crate.name) \($crate.version) brings another \(.name) than \($seen): review its sources, then update dev/sbom/bundled.json") end)
        | . + { crate: $crate.id }
      end)) as $static

| def component($of): {
    type: "library",
    "bom-ref": "c:\($of)\(.name)",
    name: .name
  } + (if .version // .seen then { version: (.version // .seen) } else {} end)
    + (.license | licence)
    + (if .purl then { purl: .purl } else {} end)
    + { properties: [note("linked"; "static, C or C++ source")] };

{
  bomFormat: "CycloneDX",
  specVersion: "1.6",
  version: 1,
  metadata: ($crates[] | select(.name == "samestory") | {
    component: ({ type: "application", "bom-ref": $refs[.id], name, version, description, purl: $refs[.id] } + (.license | licence)),
    tools: { components: [{ type: "application", name: "dev/sbom/make", version }] }
  }),
  components: (
    ($crates | map(select(.name != "samestory") | {
      type: "library", "bom-ref": $refs[.id], name, version, purl: $refs[.id]
    } + (.license | licence)
      + ($checksums["\(.name) \(.version)"] as $sum | if $sum then { hashes: [{ alg: "SHA-256", content: $sum }] } else {} end)))
    + ($static | map(. as $one | component("") + (if .holds then { components: [.holds[] | component("\($one.name)/")] } else {} end)))
    + ($libraries | map({
        type: "library",
        "bom-ref": "shared:\(.[0])",
        name: .[1],
        version: .[3],
        purl: "pkg:deb/debian/\(.[2])@\(.[3] | gsub("\\+"; "%2B") | gsub(":"; "%3A"))?arch=\(.[4])",
        properties: [
          note("linked"; "shared, \(.[0])"),
          note("version"; if .[0] == "libz.so.1" then "copied into the image" else "linked with; the image has that of its base" end)
        ]
      }))
  ),
  dependencies: (
    ($all.resolve.nodes | map(select($refs[.id]) | {
      ref: $refs[.id],
      dependsOn: ([.deps[] | select(any(.dep_kinds[]; .kind == null)) | $refs[.pkg] // empty]
        + [(.id) as $id | $static[] | select(.crate == $id) | "c:\(.name)"] | unique)
    }) | sort_by(.ref))
    + ($libraries | map({ ref: "shared:\(.[0])", dependsOn: [] }))
  )
}
